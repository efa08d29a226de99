// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cycle holds the data that the plugin's extension points share in the scheduling cycle of a pod:
//
//  1. [PodClaims] are the claims of the pod. PreFilter resolves them once with a [Resolver]. The other extension points read
//     them from the cycle state.
//  2. A [Recorder] wraps the scheduler's lists of devices in use and of slices. It keeps the lists that upstream's PreFilter
//     read ([Material]), so that nothing is listed twice.
//  3. [Allocators] makes the cycle's allocator from these lists: a [MeasuredAllocator], or upstream's allocator with a time
//     limit.
package cycle
