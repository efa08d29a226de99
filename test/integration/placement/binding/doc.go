// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binding tests the controller that creates ManagedClusterSetBindings, with a real API server. It has no code of its
// own.
package binding
