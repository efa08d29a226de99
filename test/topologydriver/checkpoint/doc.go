// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint stores the claims that a driver has prepared, with their devices, in a file. The file is the driver's only
// state. It is read at the start of each call of the kubelet, and written before any effect of the call is visible. So a driver
// that restarts, or a second driver in a rolling update, neither loses a prepared device nor prepares it for two claims.
//
//	file, err := checkpoint.New("/var/lib/kubelet/plugins/mla.example.com")
//	state, err := file.Load()
//	err = file.Store(state.With(uid, claim))
//
// The file is replaced as a whole. It has a version and a checksum of its content, so damage is always detected, see
// [CorruptError].
package checkpoint
