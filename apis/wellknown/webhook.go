// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// Names that celset-webhook reads and writes.
const (
	// LabelGuard, with the value [GuardActive], marks the pod of the replica that judges allocations, so that the guard's
	// Service selects only this pod.
	LabelGuard  = "celset.dev/guard"
	GuardActive = "active"

	// LeaseGuard is the name of the Lease that replicas use to elect the replica that judges allocations.
	LeaseGuard = "celset-guard"
)
