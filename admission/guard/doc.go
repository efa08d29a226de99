// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard prevents a device from being allocated twice. This happens with several schedulers on one pool, or if a paused
// scheduler continues after another one took over.
//
// The API server validates each claim separately, so it would store conflicting allocations of two schedulers. But before it
// stores a write, it calls admission webhooks with the version of the claim that the write replaces. The webhook asks a [Guard]
// whether the write may be stored. The Guard uses two sources:
//
//   - stored versions of claims, seen in a watch or a read and possibly stale;
//   - admitted writes that it has not seen as stored yet. Each may be stored at any moment, or never.
//
// The union of both is an upper bound of the devices allocated at any moment. So an allocation that fits in addition can't
// overlap with another one. Package allocator decides whether an allocation fits, with the code of the search.
//
// # Settled writes
//
// The API server stores a write only if the claim still has the version that the webhook received as the old object. This also
// holds for patches and for updates without a version, because the API server calls the webhook again if there is a newer
// version. So an admitted write is settled when the Guard sees a later version of the claim or its deletion. If the write
// failed without a retry, the Guard sees neither. Then it waits until the API server must have ended the request
// ([Options].Grace), reads the claim, and forgets the write.
//
// # No refusal because of stale data
//
// A claim that the Guard has seen may be deleted by now. So before the Guard refuses a write, it reads each conflicting claim
// from the API server and judges again. A claim that still conflicts had the device when it was read, or may get it at any
// moment.
//
// # A single Guard
//
// One Guard must judge all writes. Package server elects this Guard. A new Guard starts judging only when all writes that its
// predecessors admitted are settled: it waits for the Grace and then reads all claims.
package guard
