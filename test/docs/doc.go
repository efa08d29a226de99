// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs has no code of its own. Its tests check the documentation: a real API server accepts every object, every
// expression compiles, the claims of the hardware pages are allocated, and generated sections are current.
package docs
