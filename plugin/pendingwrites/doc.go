// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pendingwrites counts devices as in use while it is uncertain whether a claim has them.
//
// A scheduler may lose the answer to an allocation, because the connection ended or the API server reports a timeout. Upstream's
// plugin treats that as a failure and drops its choice. If the allocation was stored, and the watch is late, the devices seem
// free. [Writes] sits between upstream's plugin and its client:
//
//	writes, err := pendingwrites.New(pendingwrites.Config{...})
//	go writes.Run(ctx)               // settles pending writes
//	writes.CatchUp(ctx)              // before the first allocation
//	writes.InUse(pod, claim, retry)  // devices that no other claim may get
//	writes.Check(claim)              // before devices are reserved for the claim
//	writes.Client()                  // allocates
//
// # Why no device is given twice
//
// If a claim has a device, or may still get it by a request in flight, the device is in use. Such a device is always in one of
// three sets: upstream's list of devices in use, upstream's reservations, and the pending writes here. A scheduler decides on one
// pod at a time, and takes none of these devices.
//
//   - A reservation ends after the write has returned. By then the write is pending here, whether its answer was a success or was
//     lost. A write is not pending after an error that proves that it was not stored.
//   - A stored write is pending until the watch delivers this or a later version of the claim. From then on upstream's list has
//     its devices.
//   - A write with a lost answer is settled by a GET, which is consistent. If the claim has devices, they count as a stored
//     write. If the claim has another version, the API server will reject the write. If it still has the version of the write,
//     the finalizer of allocated claims is removed, which changes the version. A claim without that finalizer stays pending until
//     the API server has given up the request. A GET settles only writes sent before it.
//   - Only the leader writes; each request checks the lease when it is sent. The next leader reads all claims before it
//     allocates.
//   - Upstream's list is one set for all claims. A late event about a claim that lost a device removes the device from this set,
//     even if another claim has it by now. So [Writes.Check] looks for the device in an index over the claims that the watch
//     delivered, and in the pending writes. A device found there counts as in use until no claim has it.
//   - The list is read before the pending writes. A write that is settled in between could be missing from both, so both are read
//     again if [Writes.Ends] has changed.
//
// TestNoDeviceTwice searches for a history that violates this.
//
// The binding of a pod can be pending in the same way. [Writes.Bound] settles it by a GET before claims of the pod are released,
// and [Protecting] protects the claims of a bound pod.
package pendingwrites
