// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard refuses to let a device be allocated twice, whoever allocates: several schedulers on one
// pool, or one that was paused and goes on although another took over.
//
// The API server validates each claim for itself and stores what two schedulers have chosen at the same time.
// But it asks admission webhooks before it stores, and tells them which version of the claim a write
// replaces. A [Guard] is asked about every write of an allocation, and has two sources:
//
//   - what it sees of claims: versions that were stored, from a watch or a read, possibly late;
//   - what it admitted and has not seen yet. A write that was admitted may be stored at any moment, or never.
//
// The union of the two is an upper bound of what is allocated at any moment, so that what fits beside it can't
// overlap. What fits is counted by package allocator, as a search counts it.
//
// # When an admitted write can't come any more
//
// The API server stores a write only if the claim still has the version that the webhook was shown as the
// former one: also for patches and updates without a version, for which it asks the webhook again with a newer
// one. So an admitted write is settled as soon as a later version of its claim is seen, with that allocation or
// without, or that there is no such claim. If neither comes, because the write failed and nobody tries again, the
// claim is read after a time in which the API server ends each request ([Options].Grace), and the write is forgotten.
//
// # A refusal is never due to a delay
//
// What is seen may be old: the claim that has the device may be gone. Before a Guard refuses, it reads the
// claims that are in the way from the API server, each once, and judges again. What remains in the way had the
// device when it was read, or may have it any moment.
//
// # One at a time
//
// All writes have to be judged by one Guard. Package server elects it. A new one may only judge when all
// writes that others admitted are settled: after the Grace, with what it then read.
package guard
