// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pendingwrites counts devices as in use while it is unknown whether a claim has them.
//
// A scheduler writes an allocation, and the answer is lost: the connection ended, or the API server
// reports a timeout. Upstream's plugin takes that for a failure and forgets what it has chosen. If the
// allocation was stored, and the watch is late, the devices seem to be free. [Writes] sits between
// upstream's plugin and its client:
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
// A device that a claim has, or may yet get by a request on its way, is always in one of three sets:
// upstream's list of devices in use, upstream's reservations, and the pending writes here. A scheduler
// decides on one pod at a time, and takes none of these devices.
//
//   - A reservation ends after the write has returned. By then the write is pending here, whether its
//     answer was a success or was lost. An error that proves that nothing was stored leaves nothing
//     pending.
//   - A write that was stored is pending until the watch delivers this version of the claim or a later
//     one, and the list has it since.
//   - A write whose answer was lost is settled by a GET, which is consistent. If the claim has devices, they
//     are pending as stored. If the claim has another version, the API server refuses the write whenever
//     it arrives. If it has the version that was sent, it is changed: the finalizer of allocated claims is
//     removed. A claim without that finalizer stays pending until the API server has given up the request.
//     A GET settles only what was sent before it.
//   - Only the leader writes: whether it leads is asked again when each request is sent. The next leader
//     reads all claims before it allocates.
//   - Upstream's list is one set for all claims. A late event of a claim that had a device before
//     removes the device from it, also if another claim has the device by now. So [Writes.Check] looks for
//     the device claim by claim, in an index over what the watch has delivered, and in the pending writes.
//     A device found there counts as in use until no claim has it.
//   - The list is read before the pending writes. A write that is settled in between could be in neither,
//     so both are read again if [Writes.Ends] has changed.
//
// TestNoDeviceTwice looks for a history in which this is not so.
//
// The binding of a pod can be pending in the same way. [Writes.Bound] settles it by a GET before anything is
// taken back from a pod, and with [Keeping] the claims of a bound pod are left as they are.
package pendingwrites
