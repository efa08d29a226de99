// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/requests"
)

// AsksForTooMany reports whether a claim asks for more devices than a claim can have, whatever the node. The number of
// devices of a request with allocationMode All depends on the node. Such a request counts as none here.
func AsksForTooMany(claim *resourceapi.ResourceClaim) bool {
	return requests.AsksForMore(claim, resourceapi.AllocationResultsMaxSize)
}
