// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cycle

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

// substitute replaces the allocator of a cycle, such as in the simulation of a preemption.
type substitute interface {
	Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error)
}

type substituteInContext struct{}

// WithSubstitute returns a context that makes the allocators of the cycle call s.
func WithSubstitute(ctx context.Context, s substitute) context.Context {
	return context.WithValue(ctx, substituteInContext{}, s)
}

// substituteIn returns the substitute for the allocator of the cycle, or nil.
func substituteIn(ctx context.Context) substitute {
	s, _ := ctx.Value(substituteInContext{}).(substitute)
	return s
}

// GroupDevices allocates the claims of a pod of a group in place of the allocator's search.
type GroupDevices interface {
	Allocate(ctx context.Context, a *allocator.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error)
}

// MeasuredAllocator is celset's allocator with metrics and a limit for the whole attempt.
type MeasuredAllocator struct {
	*allocator.Allocator
	Metrics *metrics.Metrics
	Attempt *guard.Attempt
	// Constrained is set if a CEL constraint applies to a claim of the pod.
	Constrained bool
	Failed      failedNodes
	// PassedOver lists the nodes that were skipped because they refuse the pod for a reason found beforehand.
	PassedOver []fwk.NodeInfo
	// values holds the values of preferences for the devices found on each node.
	values NodeValues
	// Extended is the pod's claim for extended resources, without a node. It is nil if the pod requests none.
	Extended *resourceapi.ResourceClaim
	// Group allocates if devices are chosen for the pod's whole group, otherwise nil.
	Group GroupDevices
}

var _ structured.Allocator = &MeasuredAllocator{}

// Allocate implements [structured.Allocator].
func (a *MeasuredAllocator) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	claims = a.withContainers(claims)
	if s := substituteIn(ctx); s != nil {
		return s.Allocate(ctx, node, claims)
	}
	if over := a.Attempt.Over(); over != nil {
		return nil, SkippedNode(a.Attempt, over)
	}
	defer a.Attempt.Progress()
	end := a.Metrics.ObserveAllocation(claims, a.Constrained)
	if a.Group != nil {
		results, err := a.Group.Allocate(ctx, a.Allocator, node, claims)
		end(results != nil, allocator.Stats{}, err)
		a.Failed.note(err)
		return results, RecordedError(a.Attempt, err)
	}
	results, details, err := a.AllocateWithDetails(ctx, node, claims)
	end(results != nil, details.Stats, err)
	a.values.note(ctx, node.Name, details)
	a.Failed.note(err)
	return results, RecordedError(a.Attempt, err)
}

// withContainers returns the claims. In upstream's claim for extended resources, it notes the requests that serve each container.
func (a *MeasuredAllocator) withContainers(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	of := slices.IndexFunc(claims, func(claim *resourceapi.ResourceClaim) bool { return claim.Name == extended.ClaimName })
	if of < 0 || a.Extended == nil {
		return claims
	}
	claims = slices.Clone(claims)
	claims[of] = v1alpha1.WithContainersOf(claims[of], a.Extended)
	return claims
}

// failedNodes counts the nodes of an attempt that don't fit because an expression failed on their devices. These nodes get
// equal statuses. One message for the pod has their number and an example.
type failedNodes struct {
	mutex sync.Mutex
	count int
	// first is the error of the node with the smallest name, so that the message is stable.
	first *allocator.EvaluationError
}

func (f *failedNodes) note(err error) {
	failure, ok := errors.AsType[*allocator.EvaluationError](err)
	if !ok {
		return
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.count++
	if f.first == nil || failure.Node < f.first.Node {
		f.first = failure
	}
}

// String returns the message for the pod, "" if no node failed.
func (f *failedNodes) String() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.first == nil {
		return ""
	}
	return fmt.Sprintf("an expression fails on devices of %d nodes, such as %s", f.count, f.first.Detail())
}

// LimitedAllocator limits upstream's allocator to the time of the attempt; upstream limits only the time for each node. It also
// turns errors about one node's devices into errors of that node.
type LimitedAllocator struct {
	structured.Allocator
	attempt *guard.Attempt
	// over is done when the attempt's time is over.
	over context.Context
}

var _ structured.Allocator = &LimitedAllocator{}

// NewLimitedAllocator returns upstream's allocator with the limit of an attempt.
func NewLimitedAllocator(upstream structured.Allocator, attempt *guard.Attempt) *LimitedAllocator {
	over, cancel := context.WithCancelCause(context.Background())
	attempt.OnOver(cancel)
	return &LimitedAllocator{upstream, attempt, over}
}

// Allocate implements [structured.Allocator].
func (a *LimitedAllocator) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	if s := substituteIn(ctx); s != nil {
		return s.Allocate(ctx, node, claims)
	}
	if over := a.attempt.Over(); over != nil {
		return nil, SkippedNode(a.attempt, over)
	}
	defer a.attempt.Progress()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.over, func() { cancel(context.Cause(a.over)) })()
	results, err := a.Allocator.Allocate(ctx, node, claims)
	if over := a.attempt.Over(); over != nil && err != nil && ctx.Err() != nil {
		return nil, SkippedNode(a.attempt, over)
	}
	note(a.attempt, err)
	return results, ofNode(err, claims)
}

// aboutNode matches upstream's errors for allocationMode All that concern the devices of one node: an incomplete or invalid pool
// (kubernetes/kubernetes#141898), and a device that a constraint refuses.
var aboutNode = regexp.MustCompile(`^claim \S+, request \S+: (asks for all devices, but resource pool \S+ is currently (being updated|invalid)|` +
	`cannot add device \S+ because a claim constraint would not be satisfied)$`)

// overLimit matches upstream's error for a claim with too many devices. With allocationMode All, only this node has too many.
var overLimit = regexp.MustCompile(`^claim \S+, request \S+: adding \d+ devices exceeds the claim limit of \d+, with \d+ already accounted for$`)

// ofNode marks upstream's errors about the devices of one node as errors of that node. In Kubernetes 1.37 such errors end the
// attempt for all nodes.
func ofNode(err error, claims []*resourceapi.ResourceClaim) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if aboutNode.MatchString(text) || overLimit.MatchString(text) && !slices.ContainsFunc(claims, allocator.AsksForTooMany) {
		return fmt.Errorf("%s%w", text, structured.ErrFailedAllocationOnNode)
	}
	return err
}

// SkippedNode returns the error for a node that is skipped because the attempt is over. Results for other nodes remain valid. If
// no node fits, the claims back off.
func SkippedNode(attempt *guard.Attempt, over error) error {
	attempt.Failed(over)
	return fmt.Errorf("%s%w", over.Error(), structured.ErrFailedAllocationOnNode)
}

// RecordedError converts an error of the search to the error that the scheduler gets. The claims back off if the search took too long.
func RecordedError(attempt *guard.Attempt, err error) error {
	if over, ok := errors.AsType[*guard.OvertimeError](err); ok {
		return SkippedNode(attempt, over)
	}
	note(attempt, err)
	return err
}

// note makes the claims back off if the search took too long.
func note(attempt *guard.Attempt, err error) {
	if err == nil {
		return
	}
	if _, overBudget := errors.AsType[*allocator.BudgetError](err); overBudget || errors.Is(err, context.DeadlineExceeded) {
		attempt.Failed(err)
	}
}
