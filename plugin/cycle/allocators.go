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

// substitute allocates in place of the allocator of a cycle, such as for the time when pods are gone.
type substitute interface {
	Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error)
}

type substituteInContext struct{}

// WithSubstitute has the allocators of the cycle ask s.
func WithSubstitute(ctx context.Context, s substitute) context.Context {
	return context.WithValue(ctx, substituteInContext{}, s)
}

// substituteIn is nil if the allocator of the cycle answers.
func substituteIn(ctx context.Context) substitute {
	s, _ := ctx.Value(substituteInContext{}).(substitute)
	return s
}

// GroupDevices answers in place of a search for the claims of a pod of a group.
type GroupDevices interface {
	Allocate(ctx context.Context, a *allocator.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error)
}

// MeasuredAllocator is our allocator with a stopwatch, and a limit for the whole attempt.
type MeasuredAllocator struct {
	*allocator.Allocator
	Metrics *metrics.Metrics
	Attempt *guard.Attempt
	// Constrained tells that a CEL constraint holds for a claim of the pod.
	Constrained bool
	Failed      failedNodes
	// PassedOver are the nodes that were known to refuse the pod, and not visited.
	PassedOver []fwk.NodeInfo
	// values are what preferences say of the devices that were found.
	values NodeValues
	// Extended is the claim of the pod for extended resources without a node, nil if there is none.
	Extended *resourceapi.ResourceClaim
	// Group answers if devices are chosen for the whole group of the pod, else nil.
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
		return nil, NotLookedAt(a.Attempt, over)
	}
	defer a.Attempt.Progress()
	end := a.Metrics.ObserveAllocation(claims, a.Constrained)
	if a.Group != nil {
		results, err := a.Group.Allocate(ctx, a.Allocator, node, claims)
		end(results != nil, allocator.Stats{}, err)
		a.Failed.note(err)
		return results, Noted(a.Attempt, err)
	}
	results, details, err := a.AllocateWithDetails(ctx, node, claims)
	end(results != nil, details.Stats, err)
	a.values.note(ctx, node.Name, details)
	a.Failed.note(err)
	return results, Noted(a.Attempt, err)
}

// withContainers returns the claims, and in the claim that upstream has made for extended resources and the node which
// requests serve one container.
func (a *MeasuredAllocator) withContainers(claims []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	of := slices.IndexFunc(claims, func(claim *resourceapi.ResourceClaim) bool { return claim.Name == extended.ClaimName })
	if of < 0 || a.Extended == nil {
		return claims
	}
	claims = slices.Clone(claims)
	claims[of] = v1alpha1.WithContainersOf(claims[of], a.Extended)
	return claims
}

// failedNodes are those of one attempt that don't fit because an expression failed on their
// devices. What the nodes answer is the same for all of them; which they are is told once for the
// pod.
type failedNodes struct {
	mutex sync.Mutex
	count int
	// first is that of the least name, so that the same nodes have the same message.
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

// String is empty if there are none.
func (f *failedNodes) String() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.first == nil {
		return ""
	}
	return fmt.Sprintf("an expression fails on devices of %d nodes, such as %s", f.count, f.first.Detail())
}

// LimitedAllocator is upstream's allocator with a limit for the time of the whole attempt, and
// with errors of one node that concern that node. Upstream limits the time for a node only.
type LimitedAllocator struct {
	structured.Allocator
	attempt *guard.Attempt
	// over ends with the attempt's time.
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
		return nil, NotLookedAt(a.attempt, over)
	}
	defer a.attempt.Progress()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.over, func() { cancel(context.Cause(a.over)) })()
	results, err := a.Allocator.Allocate(ctx, node, claims)
	if over := a.attempt.Over(); over != nil && err != nil && ctx.Err() != nil {
		return nil, NotLookedAt(a.attempt, over)
	}
	note(a.attempt, err)
	return results, ofNode(err, claims)
}

// aboutNode matches upstream's errors for mode All that are about the devices of one node: a pool that is incomplete or
// invalid (kubernetes/kubernetes#141898), and a device that a constraint refuses.
var aboutNode = regexp.MustCompile(`^claim \S+, request \S+: (asks for all devices, but resource pool \S+ is currently (being updated|invalid)|` +
	`cannot add device \S+ because a claim constraint would not be satisfied)$`)

// overLimit matches upstream's error for a claim that would get too many devices. For mode All it is about the node.
var overLimit = regexp.MustCompile(`^claim \S+, request \S+: adding \d+ devices exceeds the claim limit of \d+, with \d+ already accounted for$`)

// ofNode returns an error of upstream's that is about the devices of one node as an error that concerns that node.
// In Kubernetes 1.37 such errors end the attempt for all nodes.
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

// NotLookedAt is what is said of a node when the attempt is over. What was found on others
// until then is used; if nothing was, the claims back off.
func NotLookedAt(attempt *guard.Attempt, over error) error {
	attempt.Failed(over)
	return fmt.Errorf("%s%w", over.Error(), structured.ErrFailedAllocationOnNode)
}

// Noted is the error of one of our searches as a scheduler is told of it. It has the claims back off if the
// search was too long.
func Noted(attempt *guard.Attempt, err error) error {
	if over, ok := errors.AsType[*guard.OvertimeError](err); ok {
		return NotLookedAt(attempt, over)
	}
	note(attempt, err)
	return err
}

// note has the claims back off if a search was too long.
func note(attempt *guard.Attempt, err error) {
	if err == nil {
		return
	}
	if _, overBudget := errors.AsType[*allocator.BudgetError](err); overBudget || errors.Is(err, context.DeadlineExceeded) {
		attempt.Failed(err)
	}
}
