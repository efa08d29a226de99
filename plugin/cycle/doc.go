// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cycle holds the data that the plugin's extension points pass on in the scheduling cycle of a pod:
//
//  1. [PodClaims] are the claims of the pod. PreFilter resolves them once with a [Resolver]. The other extension points read them
//     from the state of the cycle.
//  2. A [Recorder] wraps the scheduler's lists. It keeps the [Material] that upstream's PreFilter reads, so that nothing is
//     listed twice.
//  3. [Allocators] makes the allocator of the cycle from the material: a [MeasuredAllocator], or upstream's with a time limit.
package cycle
