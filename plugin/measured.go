// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// measuredAllocator is our allocator with a stopwatch, and a limit for the whole attempt.
type measuredAllocator struct {
	*allocator.Allocator
	metrics *metrics.Metrics
	attempt *guard.Attempt
	// constrained tells that a CEL constraint holds for a claim of the pod.
	constrained bool
	failed      failedNodes
	// passedOver are the nodes that were known to refuse the pod, and not visited.
	passedOver []fwk.NodeInfo
	// values are what preferences say of the devices that were found.
	values nodeValues
}

var _ structured.Allocator = &measuredAllocator{}

// Allocate implements [structured.Allocator].
func (a *measuredAllocator) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if s := simulatedIn(ctx); s != nil {
		return s.allocate(ctx, node, claims)
	}
	if over := a.attempt.Over(); over != nil {
		return nil, notLookedAt(a.attempt, over)
	}
	defer a.attempt.Progress()
	end := a.metrics.ObserveAllocation(claims, a.constrained)
	results, details, err := a.AllocateWithDetails(ctx, node, claims)
	end(results != nil, details.Stats, err)
	a.values.note(ctx, node.Name, details)
	a.failed.note(err)
	return results, noted(a.attempt, err)
}
