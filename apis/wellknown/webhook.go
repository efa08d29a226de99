// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package wellknown

// What celset-webhook reads and writes.
const (
	// LabelGuard, with the value [GuardActive], is on the pod of the replica that judges allocations. The Service of the guard
	// selects it.
	LabelGuard  = "celset.dev/guard"
	GuardActive = "active"

	// LeaseGuard is the Lease by which replicas elect the one that judges.
	LeaseGuard = "celset-guard"
)
