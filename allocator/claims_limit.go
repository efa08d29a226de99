// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/requests"
)

// AsksForTooMany reports whether a claim asks for more devices than a claim can have, on any node. A request with
// allocationMode All counts as 0 devices, because its number depends on the node.
func AsksForTooMany(claim *resourceapi.ResourceClaim) bool {
	return requests.AsksForMore(claim, resourceapi.AllocationResultsMaxSize)
}
