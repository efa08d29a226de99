// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkpoint keeps, in a file, which claims a driver has prepared and with which
// devices. The file is the only memory of the driver: it is read at the beginning of
// each call of the kubelet and written before anything that the call does is to be seen,
// so neither a restart nor a second driver process, as in a rolling update, forgets or
// gives away a device.
//
//	file, err := checkpoint.New("/var/lib/kubelet/plugins/mla.example.com")
//	state, err := file.Load()
//	err = file.Store(state.With(uid, claim))
//
// The file is replaced as a whole, has a version, and a checksum of its content: what
// was damaged is never taken for the truth, see [CorruptError].
package checkpoint
