// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topologydriver is a DRA driver for devices that don't exist. It publishes a generated topology as the devices of its
// node, and gives each container the names of its devices. The ResourceSlices, the kubelet's calls and the CDI specs are real.
// Tests, demos and clusters without accelerators use it.
//
//	drivers, err := topologydriver.Start(ctx, topologydriver.Options{...})  // one for each driver of the topology
//	err = drivers.Run(ctx)
//
// A driver prepares a claim by recording its devices in a checkpoint and then writing a CDI spec. It unprepares a claim by
// undoing these steps in reverse order. Both calls are idempotent, even after an interruption. The checkpoint is the only state
// and is read for each call, so that a restarted driver, or two drivers in a rolling update, agree. The driver also uses the
// checkpoint to detect double allocations: if a device is prepared for a claim, the driver refuses to prepare it for another
// claim, see [DoubleAllocationError].
//
// The driver ignores opaque configuration for other drivers, such as CEL device constraints for celset.dev. It supports no
// configuration for itself.
//
// The subpackage cdi writes CDI specs, checkpoint stores the state, and celset-topology-driver is the program.
package topologydriver
