// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"context"
	"errors"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel/fairness"
)

// The expressions of claims are compiled in the background when a pod that needs them is queued. One claim of each namespace is
// compiled at a time, and namespaces take turns after each expression. PreEnqueue gates the pod meanwhile. If compiling takes
// long, the pod passes the gate once and PreFilter refuses it, so that users see the reason. A scheduling cycle only looks up
// prepared claims. It never compiles tenants' expressions.

// Claims finds the prepared claims of one profile. A scheduler uses [Ahead]. A program that can't wait between two pods uses
// [AtOnce].
type Claims interface {
	// Of returns the prepared claims. missing lists those claims that are not prepared yet.
	Of(ctx context.Context, claims []*resourceapi.ResourceClaim) (prepared allocator.Prepared, missing []*resourceapi.ResourceClaim, err error)
	// Await requests the preparation of the missing claims. When they are prepared, the pod is activated.
	Await(pod *v1.Pod, missing []*resourceapi.ResourceClaim)
	// IsAhead reports whether claims are prepared before a scheduling cycle needs them.
	IsAhead() bool
	// MayHave reports whether the claim's selectors may accept devices of one of the drivers. It is true for a claim that is not
	// prepared.
	MayHave(claim *resourceapi.ResourceClaim, drivers []string) bool
}

// AtOnce implements [Claims]. It prepares claims when they are looked up, so no claims are missing.
type AtOnce struct{ View }

// Of implements [Claims].
func (p AtOnce) Of(ctx context.Context, claims []*resourceapi.ResourceClaim) (prepared allocator.Prepared, missing []*resourceapi.ResourceClaim, err error) {
	prepared, missing = p.Find(claims)
	if len(missing) > 0 && prepared == nil {
		prepared = allocator.Prepared{}
	}
	for _, claim := range missing {
		if prepared[claim.UID], err = p.Keep(ctx, claim); err != nil {
			return nil, nil, err
		}
	}
	return prepared, nil, nil
}

// Await implements [Claims].
func (AtOnce) Await(*v1.Pod, []*resourceapi.ResourceClaim) {}

// IsAhead implements [Claims].
func (AtOnce) IsAhead() bool { return false }

// Ahead implements [Claims]. It looks up claims that were prepared in the background.
type Ahead struct {
	View
	*Background
	Activate func(*v1.Pod)
}

// Of implements [Claims].
func (p Ahead) Of(_ context.Context, claims []*resourceapi.ResourceClaim) (prepared allocator.Prepared, missing []*resourceapi.ResourceClaim, err error) {
	prepared, missing = p.Find(claims)
	return prepared, missing, nil
}

// IsAhead implements [Claims].
func (Ahead) IsAhead() bool { return true }

// Background prepares claims for all profiles of a scheduler. It is safe for concurrent use.
type Background struct {
	*fairness.Background[wanted]

	mutex sync.Mutex
	// waiting maps a claim to the pods that are activated when the claim is prepared. The keys of the inner map are UIDs of pods.
	waiting map[wanted]map[types.UID]waitingPod
}

// NewBackground returns a Background whose goroutines prepare claims until ctx is done.
func NewBackground(ctx context.Context) *Background {
	return &Background{Background: fairness.NewBackground[wanted](ctx), waiting: map[wanted]map[types.UID]waitingPod{}}
}

// wanted identifies a claim to prepare. constraints is set if its constraints and preferences are compiled, too.
type wanted struct {
	claim       types.UID
	constraints bool
}

// waitingPod has only the fields that the scheduling queue needs to find the pod, so that deleted pods and their claims are not
// kept in memory.
type waitingPod struct {
	*v1.Pod
	activate func(*v1.Pod)
}

func waiter(pod *v1.Pod, activate func(*v1.Pod)) waitingPod {
	return waitingPod{&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Spec:       v1.PodSpec{SchedulingGroup: pod.Spec.SchedulingGroup},
	}, activate}
}

// Await implements [Claims].
func (p Ahead) Await(pod *v1.Pod, missing []*resourceapi.ResourceClaim) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	// The claims of a namespace are prepared in order. So all missing claims are prepared when the last of them is.
	last := wanted{missing[len(missing)-1].UID, p.Constraints}
	if p.waiting[last] == nil {
		p.waiting[last] = map[types.UID]waitingPod{}
	}
	p.waiting[last][pod.UID] = waiter(pod, p.Activate)
	for _, claim := range missing {
		namespace, name, want := claim.Namespace, claim.Name, wanted{claim.UID, p.Constraints}
		p.Add(namespace, want, func(ctx context.Context) { p.prepareWanted(ctx, namespace, name, want.claim) }, func() { p.wake(want) })
	}
}

// prepareWanted prepares the claim with this UID if it still exists and is not prepared yet.
func (v View) prepareWanted(ctx context.Context, namespace, name string, uid types.UID) {
	claim, err := v.claims.Get(namespace, name)
	if err != nil || claim.UID != uid || v.look(claim, v.version) != nil {
		return
	}
	if _, err := v.Keep(ctx, claim); err != nil {
		klog.FromContext(ctx).V(4).Info("Could not prepare the expressions", "err", err)
	}
}

// wake activates the pods that wait for the claim.
func (b *Background) wake(claim wanted) {
	b.mutex.Lock()
	pods := b.waiting[claim]
	delete(b.waiting, claim)
	b.mutex.Unlock()
	for _, pod := range pods {
		pod.activate(pod.Pod)
	}
}

// All returns the prepared claims. It returns an error if a claim is not prepared.
func All(ctx context.Context, p Claims, claims []*resourceapi.ResourceClaim) (allocator.Prepared, error) {
	prepared, missing, err := p.Of(ctx, claims)
	if err != nil || len(missing) > 0 {
		return nil, errors.Join(err, errNotPrepared)
	}
	return prepared, nil
}

// errNotPrepared is the error of All in a scheduling cycle, which must not compile the missing claim.
var errNotPrepared = errors.New("the expressions of a claim are being compiled")

// Message returns the reason why a pod waits: the missing claims are being compiled.
func Message(missing []*resourceapi.ResourceClaim) string {
	if more := len(missing) - 1; more > 0 {
		return fmt.Sprintf("the expressions of claim %s and of %d others are being compiled: the scheduler tries the pod after that", klog.KObj(missing[0]), more)
	}
	return fmt.Sprintf("the expressions of claim %s are being compiled: the scheduler tries the pod after that", klog.KObj(missing[0]))
}
