// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package realnode

// mayUnshare is called only on Linux.
func mayUnshare() error { return nil }
