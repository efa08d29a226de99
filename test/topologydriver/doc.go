// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topologydriver is a DRA driver for devices that don't exist: it publishes a
// generated topology as the devices of its node, and tells each container which of them
// it has. Everything between is real: the ResourceSlices, the kubelet's calls, the CDI
// specs. Tests, demos and clusters without accelerators use it.
//
//	drivers, err := topologydriver.Start(ctx, topologydriver.Options{...})  // one for each driver of the topology
//	err = drivers.Run(ctx)
//
// A driver prepares a claim by recording its devices in a checkpoint and then writing a
// CDI spec, and unprepares it by undoing these in the opposite order; whatever happens in
// between, a call that is repeated ends the same. The checkpoint is the only state, and
// it is read for each call, so that a restarted driver, or the two of a rolling update,
// know the same. It is also what a driver finds double allocations with: a device that is
// prepared for a claim is refused to any other, see [DoubleAllocationError].
//
// Opaque configuration in an allocation that is for other drivers, such as CEL device
// constraints for celset.dev, does not concern it; for itself it knows none.
//
// Packages below: cdi writes what containers are told, checkpoint what must not be
// forgotten. celset-topology-driver is the program.
package topologydriver
