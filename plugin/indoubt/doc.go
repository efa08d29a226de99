// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package indoubt keeps devices of which nobody knows whether a claim has them.
//
// A scheduler writes an allocation and is not told what became of it: the connection ended, or the API
// server said that it does not know either. Upstream's plugin takes that for a failure and forgets what it
// has chosen. If the allocation was stored, and the watch is late, the devices seem to be free.
//
// [Writes] looks at these writes ([Writes.Client]) and counts their devices as in use ([Writes.From]) until it
// is known what became of them: by reading the claim from the API server, which is consistent. If it has no
// devices it is changed, so that a request that is still on its way is refused when it comes.
//
// The same goes for what was stored, until the watch says so, and for what an earlier leader has written, which the
// watch of the next one need not have told it yet: [Writes.CatchUp]. And before a device is given to a claim it is
// looked up that no other one has it: [Writes.Check]. What a pod has that was bound without the scheduler knowing is not
// taken back: [Keeping].
package indoubt
