// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cycle has what the extension points of the plugin hand on in the scheduling cycle of a pod:
//
//  1. [PodClaims] are the claims of the pod. A [Resolver] finds them once, in PreFilter. The other extension points read them
//     from the state of the cycle.
//  2. A [Recorder] stands between upstream's plugin and the scheduler's lists, and keeps the [Material] that upstream's
//     PreFilter was given, so that nothing is listed twice.
//  3. [Allocators] makes the allocator of the cycle from the material: a [MeasuredAllocator] of ours, or upstream's with a
//     limit for its time.
package cycle
