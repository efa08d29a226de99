// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pendingwrites counts devices as in use while it is uncertain whether the API server stored their allocation.
//
// A scheduler may lose the response to an allocation, because the connection ended or the API server reports a timeout.
// Upstream's plugin treats that as a failure and drops its choice. If the allocation was stored, and the watch is late, the
// devices seem free. [Writes] sits between upstream's plugin and its client:
//
//	writes, err := pendingwrites.New(pendingwrites.Config{...})
//	go writes.Run(ctx)               // settles pending writes
//	writes.CatchUp(ctx)              // before the first allocation
//	writes.InUse(pod, claim, retry)  // devices that the pod must not get
//	writes.Check(claim)              // before devices are reserved for the claim
//	writes.Client()                  // allocates
//
// # Why no device is given twice
//
// If a claim has a device, or may still get it by a request in flight, the device is in use. Such a device is always in one of
// three sets: upstream's list of devices in use, upstream's reservations, and the pending writes here. A scheduler decides on
// one pod at a time, and takes none of these devices.
//
//   - A reservation ends after the write has returned. By then the write is pending here, whether its response was a success or
//     was lost. A write is not pending after an error that proves that it was not stored.
//   - A stored write is pending until the watch delivers the written version of the claim or a later one. From then on
//     upstream's list has the devices.
//   - A write with a lost response is settled by a GET, which is consistent. If the claim has devices, they count as a stored
//     write. If the claim has another version, the API server will reject the write. If the claim still has the version that
//     was sent, the finalizer of allocated claims is removed, which changes the version. A claim without that finalizer stays
//     pending until the API server has given up the request. A GET settles only writes that were sent before the GET.
//   - Only the leader writes, and each request checks the lease when it is sent. The next leader reads all claims before it
//     allocates.
//   - Upstream's list is one set for all claims. A late event about a claim that lost a device removes the device from this
//     set, even if another claim has the device by now. So [Writes.Check] looks for the device in an index over the claims that
//     the watch delivered, and in the pending writes. A device found there counts as in use until no claim has it.
//   - The list is read before the pending writes. A write that is settled in between could be missing from both, so both are
//     read again if [Writes.Ends] has changed.
//
// TestNoDeviceTwice searches for a sequence of events after which two claims have the same device.
//
// The binding of a pod can be uncertain in the same way. [Writes.Bound] reads the pod before claims of the pod are released,
// and [Protecting] protects the claims of a bound pod.
package pendingwrites
