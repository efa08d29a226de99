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

// The expressions of claims are compiled in the background, when a pod that needs them is queued: one claim of each
// namespace at a time, and one expression at a time in turns of namespaces. The pod stays gated until that
// is done. If it takes long, the pod is let through once, to be refused with a reason that users see. A
// scheduling cycle looks up what was prepared, and compiles nothing that tenants write.

// Claims finds what was prepared of the claims of pods, for one profile. It is Ahead in a scheduler, and
// AtOnce in a program that tries pods and has no time between two of them.
type Claims interface {
	// Of returns what was prepared of the claims that need it. missing are those that have to be waited for.
	Of(ctx context.Context, claims []*resourceapi.ResourceClaim) (prepared allocator.Prepared, missing []*resourceapi.ResourceClaim, err error)
	// Await has missing claims prepared, and the pod activated then.
	Await(pod *v1.Pod, missing []*resourceapi.ResourceClaim)
	// IsAhead reports whether claims are prepared before a scheduling cycle needs them.
	IsAhead() bool
	// MayHave reports whether a claim may get devices of some drivers, as far as that was prepared.
	MayHave(claim *resourceapi.ResourceClaim, drivers []string) bool
}

// AtOnce prepares claims when they are needed. None is ever missing.
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

// Ahead looks up claims that were prepared in the background.
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
	// waiting has the pods that are activated when a claim was prepared.
	waiting map[wanted]map[types.UID]waitingPod
}

// NewBackground prepares claims until the context ends.
func NewBackground(ctx context.Context) *Background {
	return &Background{Background: fairness.NewBackground[wanted](ctx), waiting: map[wanted]map[types.UID]waitingPod{}}
}

// wanted is what has to be prepared.
type wanted struct {
	claim       types.UID
	constraints bool
}

// waitingPod has what the queue knows a pod by. Pods and claims that are gone are not kept until their turn comes.
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

// Await has missing claims prepared, and the pod activated then.
func (p Ahead) Await(pod *v1.Pod, missing []*resourceapi.ResourceClaim) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	// The claims of a namespace are prepared one after the other: when the last one is, all are.
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

// prepareWanted prepares a claim if it is still there.
func (v View) prepareWanted(ctx context.Context, namespace, name string, uid types.UID) {
	claim, err := v.claims.Get(namespace, name)
	if err != nil || claim.UID != uid || v.look(claim, v.version) != nil {
		return
	}
	if _, err := v.Keep(ctx, claim); err != nil {
		klog.FromContext(ctx).V(4).Info("Not prepared", "err", err)
	}
}

// wake activates the pods that wait for a claim.
func (b *Background) wake(claim wanted) {
	b.mutex.Lock()
	pods := b.waiting[claim]
	delete(b.waiting, claim)
	b.mutex.Unlock()
	for _, pod := range pods {
		pod.activate(pod.Pod)
	}
}

// All returns what was prepared of claims, and an error if that is not all.
func All(ctx context.Context, p Claims, claims []*resourceapi.ResourceClaim) (allocator.Prepared, error) {
	prepared, missing, err := p.Of(ctx, claims)
	if err != nil || len(missing) > 0 {
		return nil, errors.Join(err, errNotPrepared)
	}
	return prepared, nil
}

// errNotPrepared ends what would have to compile something within a scheduling cycle.
var errNotPrepared = errors.New("the expressions of a claim are being compiled")

// Message returns why a pod waits for claims that are not prepared yet.
func Message(missing []*resourceapi.ResourceClaim) string {
	if more := len(missing) - 1; more > 0 {
		return fmt.Sprintf("the expressions of claim %s and of %d others are being compiled: the pod is tried when that is done", klog.KObj(missing[0]), more)
	}
	return fmt.Sprintf("the expressions of claim %s are being compiled: the pod is tried when that is done", klog.KObj(missing[0]))
}
