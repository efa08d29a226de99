// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard prevents a device from being allocated twice. This happens with several schedulers on one pool, or if a paused
// scheduler continues after another one took over.
//
// The API server validates each claim separately, so it stores conflicting allocations of two schedulers. But it calls admission
// webhooks before it stores a write, with the version of the claim that the write replaces. The API server asks a [Guard] about
// every write of an allocation. The Guard uses two sources:
//
//   - claims seen: stored versions from a watch or a read, possibly stale;
//   - admitted writes not seen yet: each may be stored at any moment, or never.
//
// The union of the two is an upper bound of the allocated devices at any moment. So an allocation that fits beside it can't
// overlap with another one. Package allocator decides whether it fits, with the code of the search.
//
// # Settled writes
//
// The API server stores a write only if the claim still has the version that the webhook received as the old object. This also
// holds for patches and for updates without a version: the API server calls the webhook again with a newer version. So an
// admitted write is settled when a later version of its claim, or the deletion of the claim, is seen. If the write failed without
// a retry, neither happens. Then the Guard waits until the API server must have ended the request ([Options].Grace), reads the
// claim, and removes the write.
//
// # No refusal because of stale data
//
// A claim that was seen may be deleted by now. So before a Guard refuses a write, it reads the conflicting claims from the API
// server, each once, and judges again. A claim that still conflicts had the device when it was read, or may get it at any moment.
//
// # A single Guard
//
// One Guard must judge all writes. Package server elects it. A new Guard judges only after all writes that its predecessors
// admitted are settled: it waits for the Grace and then reads all claims.
package guard
