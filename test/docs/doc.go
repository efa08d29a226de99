// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs has no code of its own. Its tests try out what the documentation
// shows: a real API server takes every object, every expression compiles, the claims of the
// pages about hardware are allocated, and what is generated is up to date.
package docs
