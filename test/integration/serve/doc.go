// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve tests "kubectl celset serve" and the watches behind it with a real API server, which is also a hub.
package serve
