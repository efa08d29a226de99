// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/apis/compat"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/preparation"
)

// The scheduler aggregates nodes with equal statuses, so Filter returns short statuses that are equal for many nodes. In
// addition, the pod gets one detailed explanation for the node with the nearest miss. It has the numbers of devices, the
// conjunct that can't be met, and the claims that use the needed devices.

// These limits keep the explanation for one pod from delaying other pods.
const (
	missTimeout = 200 * time.Millisecond
	missSteps   = 20_000
	// nearMissNodes is the maximum number of nodes that are compared.
	nearMissNodes = 50
)

// NearMisses describes, for a pod that fits nowhere, why the nearest node does not fit.
type NearMisses struct {
	Allocators *cycle.Allocators
	Prepared   preparation.Claims
	// Name is the plugin's name in the statuses of nodes that the plugin refused.
	Name string
	// TaintRules lists the rules that add taints to devices. It is nil if the scheduler does not watch them.
	TaintRules resourcelisters.DeviceTaintRuleLister
	// Nodes returns the nodes of the scheduling cycle.
	Nodes func() fwk.NodeInfoLister
	// WithTimeout is [context.WithTimeout]. Tests replace it so that slow machines don't reach the timeout.
	WithTimeout func(context.Context, time.Duration) (context.Context, context.CancelFunc)
}

// Text describes the nearest miss. It returns "" if no node is a near miss or if the time is over first.
func (m *NearMisses) Text(ctx context.Context, c *cycle.PodClaims, pod *v1.Pod, nodes fwk.NodeToStatusReader) string {
	if !c.Ours.Constrained || nodes == nil {
		return ""
	}
	defer c.Attempt.Progress()
	timeout := c.Attempt.Remaining(missTimeout)
	if timeout <= 0 {
		// The attempt has no time left for an explanation.
		return ""
	}
	ctx, cancel := m.WithTimeout(ctx, timeout)
	defer cancel()
	miss, err := m.nearestMiss(ctx, pod, c, nodes)
	if err != nil {
		// An error may mean that the explanation was interrupted, and then it may be wrong.
		klog.FromContext(ctx).V(4).Info("Could not explain why the pod does not fit", "pod", klog.KObj(pod), "err", err)
		return ""
	}
	if miss == nil || miss.Fits || miss.Failed {
		// The claims seem to fit if other claims have reserved devices that are not written yet. If an expression failed, the pod has
		// another message about that.
		return ""
	}
	return "nearest miss: node " + miss.Node + ": " + miss.String()
}

// nearestMiss explains why the claims don't fit on the closest node. It returns nil if no node can be explained.
func (m *NearMisses) nearestMiss(ctx context.Context, pod *v1.Pod, c *cycle.PodClaims, nodes fwk.NodeToStatusReader) (*explain.Explanation, error) {
	claims := c.All()
	prepared, err := c.AllPrepared(ctx, m.Prepared)
	if err != nil {
		return nil, err
	}
	a, err := m.Allocators.NewAllocator(ctx, prepared, cycle.Material{})
	if err != nil {
		return nil, err
	}
	node, err := m.closest(ctx, a, claims, nodes, func(info fwk.NodeInfo) bool {
		// Such a node provides the extended resource by a device plugin, so the pod's claim would be different there.
		return m.Allocators.Resolver.Features.EnableDRAExtendedResource &&
			slices.ContainsFunc(extended.Resources(pod, m.Allocators.Resolver.Manager.DeviceClassResolver().GetDeviceClass), func(name v1.ResourceName) bool {
				return info.GetAllocatable().GetScalarResources()[name] > 0
			})
	})
	if err != nil || node == nil {
		return nil, err
	}
	problem, err := m.problem(prepared, claims)
	if err != nil {
		return nil, err
	}
	if len(prepared) > 0 {
		// Tenants' expressions are never compiled for an explanation.
		ctx = cel.OnlyCompiled(ctx)
	}
	return problem.Node(ctx, node)
}

// closest returns the node that lacks the fewest devices (see lacking). It considers the nodes that this plugin refused, but
// skips a node if differs returns true for it, because the pod would have different claims there.
func (m *NearMisses) closest(ctx context.Context, a *allocator.Allocator, claims []*resourceapi.ResourceClaim, nodes fwk.NodeToStatusReader,
	differs func(fwk.NodeInfo) bool) (*v1.Node, error) {
	refused, err := nodes.NodesForStatusCode(m.Nodes(), fwk.UnschedulableAndUnresolvable)
	if err != nil {
		return nil, err
	}
	refused = slices.DeleteFunc(slices.Clone(refused), func(info fwk.NodeInfo) bool { return nodes.Get(info.Node().Name).Plugin() != m.Name || differs(info) })
	slices.SortFunc(refused, func(a, b fwk.NodeInfo) int { return cmp.Compare(a.Node().Name, b.Node().Name) })
	var closest *v1.Node
	least := 0
	for i, info := range refused {
		if i == nearMissNodes {
			break
		}
		requests, err := a.RequestDevices(ctx, info.Node(), claims)
		if errors.Is(err, structured.ErrFailedAllocationOnNode) {
			// The devices of a node with an incomplete pool can't be counted.
			continue
		}
		if err != nil {
			return nil, err
		}
		if lacking := lacking(requests); closest == nil || lacking < least {
			closest, least = info.Node(), lacking
		}
	}
	return closest, nil
}

// These are the weights of a device that a request lacks. They add up, because a device that does not exist isn't free either.
const (
	absentWeight = 1000
	// unusableWeight is the weight of a device that has a taint which the request does not tolerate, or that needs a feature which
	// is off. An administrator can make such a device usable.
	unusableWeight = 300
	inUseWeight    = 100
)

// lacking returns the sum of the weights of the devices that the requests lack. Between nodes that lack equally many devices,
// more free devices give a lower result.
func lacking(requests []allocator.RequestDevices) int {
	sum := 0
	for _, r := range requests {
		missing, inUse := max(0, r.Wanted-len(r.Matching)), max(0, r.Wanted-len(r.Free))
		unusable := min(missing, len(r.Unusable))
		sum += (missing-unusable)*absentWeight + unusable*unusableWeight + inUse*inUseWeight - min(len(r.Free), inUseWeight-1)
	}
	return sum
}

// problem returns the allocation problem of the claims, with the cluster's current allocations.
func (m *NearMisses) problem(prepared allocator.Prepared, claims []*resourceapi.ResourceClaim) (*explain.Problem, error) {
	allocated, err := m.Allocators.Resolver.Manager.ResourceClaims().List()
	if err != nil {
		return nil, err
	}
	all, err := m.Allocators.Resolver.Manager.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return nil, err
	}
	var rules []*compat.DeviceTaintRule
	if m.TaintRules != nil {
		if rules, err = m.TaintRules.List(labels.Everything()); err != nil {
			return nil, err
		}
	}
	budget := m.Allocators.Budget
	budget.Steps = min(budget.Steps, 2*missSteps) // one node gets half
	return &explain.Problem{Environment: m.Allocators.Preparing.Environment, TaintRules: rules, Problem: allocator.Problem{
		Claims: claims, Allocated: allocated, Classes: m.Allocators.Resolver.Manager.DeviceClasses(), Slices: all,
		Features: m.Allocators.Features(), Selectors: prepared.SelectorsOr(m.Allocators.Preparing.Selectors),
		Options: []allocator.Option{
			allocator.WithEnvironment(m.Allocators.Preparing.Environment), allocator.WithCache(m.Allocators.Cache),
			// An explanation needs any fitting set, not the best one.
			allocator.WithoutPreferences(),
			allocator.WithBudget(budget),
		},
	}}, nil
}
