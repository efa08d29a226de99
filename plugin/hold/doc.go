// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hold keeps devices for pods for which others were evicted. Until those have ended and the
// devices are free nobody else of the same or a lower priority may get them, or the eviction was for
// nothing.
//
// A hold begins when a pod is nominated to a node ([Holds.Keep]) and ends when the pod is bound or gone,
// when it is nominated to another node or to none, when its time is over, or when a pod of a higher
// priority takes one of its devices. It is in memory. Who needs one after a restart finds out again what
// to hold.
package hold
