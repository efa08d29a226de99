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

// substitute replaces the cycle's allocator, for example with the simulation of a preemption.
type substitute interface {
	Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error)
}

type substituteInContext struct{}

// WithSubstitute returns a context that makes the cycle's allocator call s instead of searching.
func WithSubstitute(ctx context.Context, s substitute) context.Context {
	return context.WithValue(ctx, substituteInContext{}, s)
}

// substituteIn returns the substitute in the context, or nil.
func substituteIn(ctx context.Context) substitute {
	s, _ := ctx.Value(substituteInContext{}).(substitute)
	return s
}

// GroupDevices allocates the claims of a pod that is placed together with its group. It replaces the allocator's own search.
type GroupDevices interface {
	Allocate(ctx context.Context, a *allocator.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error)
}

// MeasuredAllocator is celset's allocator with metrics and a time limit for the whole scheduling attempt.
type MeasuredAllocator struct {
	*allocator.Allocator
	Metrics *metrics.Metrics
	Attempt *guard.Attempt
	// Constrained is set if a CEL constraint applies to at least one claim of the pod.
	Constrained bool
	Failed      failedNodes
	// PassedOver lists the nodes that PreFilter left out because they refuse the pod for a reason found earlier.
	PassedOver []fwk.NodeInfo
	// values holds the values of preferences for the devices found on each node.
	values NodeValues
	// Extended is the pod's claim for extended resources, as it is independent of a node. It is nil if the pod requests none.
	Extended *resourceapi.ResourceClaim
	// Group allocates the claims if the pod is placed together with its group, otherwise nil.
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

// withContainers returns the claims. It adds an annotation to upstream's claim for extended resources: which of its requests
// serve which container.
func (a *MeasuredAllocator) withContainers(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	of := slices.IndexFunc(claims, func(claim *resourceapi.ResourceClaim) bool { return claim.Name == extended.ClaimName })
	if of < 0 || a.Extended == nil {
		return claims
	}
	claims = slices.Clone(claims)
	claims[of] = v1alpha1.WithContainersOf(claims[of], a.Extended)
	return claims
}

// failedNodes counts the nodes that don't fit because an expression failed on their devices. All these nodes get the same
// status. The pod gets one message with their number and one example.
type failedNodes struct {
	mutex sync.Mutex
	count int
	// first is the error of the node whose name sorts first, so that the message doesn't change between attempts.
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

// String returns the message for the pod, or "" if the expressions failed on no node.
func (f *failedNodes) String() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.first == nil {
		return ""
	}
	return fmt.Sprintf("an expression fails on devices of %d nodes, such as %s", f.count, f.first.Detail())
}

// LimitedAllocator is upstream's allocator with the time limit of the attempt. Upstream only limits the time for each node.
// LimitedAllocator also makes some of upstream's errors affect only the node whose devices caused the error.
type LimitedAllocator struct {
	structured.Allocator
	attempt *guard.Attempt
	// over is done when the attempt's time is over.
	over context.Context
}

var _ structured.Allocator = &LimitedAllocator{}

// NewLimitedAllocator wraps upstream's allocator with the time limit of an attempt.
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

// aboutNode matches upstream's errors for allocationMode All that are caused by the devices of one node: an incomplete or
// invalid pool (kubernetes/kubernetes#141898), or a device that a constraint excludes.
var aboutNode = regexp.MustCompile(`^claim \S+, request \S+: (asks for all devices, but resource pool \S+ is currently (being updated|invalid)|` +
	`cannot add device \S+ because a claim constraint would not be satisfied)$`)

// overLimit matches upstream's error for a claim with too many devices. With allocationMode All, the number of devices depends
// on the node, so other nodes may fit.
var overLimit = regexp.MustCompile(`^claim \S+, request \S+: adding \d+ devices exceeds the claim limit of \d+, with \d+ already accounted for$`)

// ofNode makes upstream's errors about the devices of one node reject only that node. Without ofNode, Kubernetes 1.37 ends the
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

// SkippedNode returns the error for a node that is not searched because the attempt's time is over. Nodes that were found
// before remain valid. If no node fits, the pod's claims wait for a back-off.
func SkippedNode(attempt *guard.Attempt, over error) error {
	attempt.Failed(over)
	return fmt.Errorf("%s%w", over.Error(), structured.ErrFailedAllocationOnNode)
}

// RecordedError returns the error for the scheduler after a search failed with err. If the search took too long, the pod's
// claims wait for a back-off.
func RecordedError(attempt *guard.Attempt, err error) error {
	if over, ok := errors.AsType[*guard.OvertimeError](err); ok {
		return SkippedNode(attempt, over)
	}
	note(attempt, err)
	return err
}

// note starts a back-off of the pod's claims if err means that the search exceeded a budget or its time.
func note(attempt *guard.Attempt, err error) {
	if err == nil {
		return
	}
	if _, overBudget := errors.AsType[*allocator.BudgetError](err); overBudget || errors.Is(err, context.DeadlineExceeded) {
		attempt.Failed(err)
	}
}
