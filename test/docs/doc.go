// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs has no code of its own. Its tests try out what the documentation
// shows: a real API server takes every object, and every expression compiles.
package docs
