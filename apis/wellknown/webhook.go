// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// Names that celset-webhook reads and writes.
const (
	// LabelGuard, with the value [GuardActive], is on the pod of the replica that judges allocations. The Service of the guard
	// selects the pod.
	LabelGuard  = "celset.dev/guard"
	GuardActive = "active"

	// LeaseGuard is the Lease that replicas use to elect the replica that judges allocations.
	LeaseGuard = "celset-guard"
)
