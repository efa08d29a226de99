// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package indoubt

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"k8s.io/utils/clock"
)

// Outcome is what became of a write.
type Outcome string

const (
	// Stored means that the claim has devices. The scheduler's list of claims says so by now.
	Stored Outcome = "stored"
	// NotStored means that the claim was written since, here or by somebody else, so that this write is refused.
	NotStored Outcome = "not_stored"
	// Gone means that there is no such claim any more.
	Gone Outcome = "gone"
	// GivenUp means that the claim is as it was, and that the API server has given up the request. It is the end
	// of a claim without the finalizer of allocated claims, which schedulers put there before they allocate.
	GivenUp Outcome = "given_up"
)

// Outcomes are all of them.
var Outcomes = []Outcome{Stored, NotStored, Gone, GivenUp}

const (
	// untilGivenUp is how long a request may still be carried out of which nothing was heard. The API server
	// gives one up after its --request-timeout, by default a minute.
	untilGivenUp = 90 * time.Second
	// The first look is at once. While the API server does not answer it is asked ever less often.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Second
	// maxAttempts is how many allocations may be in doubt for one claim. Nothing more is written then until one
	// is known.
	maxAttempts = 64
	// maxWaiting is how many pods are remembered that may have been refused because of one claim. Others are
	// tried again when something else happens, or after some minutes.
	maxWaiting = 1024
)

// Writes are those of one scheduler, in all of its profiles. It is safe for concurrent use.
type Writes struct {
	client kubernetes.Interface
	assume func(*resourceapi.ResourceClaim) error
	clock  clock.PassiveClock
	ended  func(Outcome)
	queue  workqueue.TypedRateLimitingInterface[types.UID]

	// mutex guards what follows.
	mutex sync.Mutex
	// claims have something in doubt.
	claims map[types.UID]*claimInDoubt
	// caughtUp tells that CatchUp has nothing left to do.
	caughtUp bool
	// begun and ends are how many attempts were ever in doubt and how many are not any more.
	begun, ends uint64
}

type claimInDoubt struct {
	namespace, name string
	attempts        []attempt
	// waiting are pods from which the devices were kept, and how they are tried again.
	waiting map[types.UID]waiting
}

// attempt is one allocation that was sent.
type attempt struct {
	number uint64
	// version is what the claim was when it was sent: it is stored if the claim is still the same.
	version string
	devices []resourceapi.DeviceRequestAllocationResult
	at      time.Time
}

type waiting struct {
	pod      *v1.Pod
	activate func(*v1.Pod)
}

// New returns writes of which none is in doubt. Claims are read with the client, and handed to assume when
// they are found to have devices, which fails with [assumecache.ErrNotFound] if the scheduler does not know the
// claim yet. ended is told what became of each write that was in doubt; it may be nil.
func New(client kubernetes.Interface, assume func(*resourceapi.ResourceClaim) error, clock clock.PassiveClock, ended func(Outcome)) *Writes {
	if ended == nil {
		ended = func(Outcome) {}
	}
	return &Writes{
		client: client, assume: assume, clock: clock, ended: ended, claims: map[types.UID]*claimInDoubt{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstRetry, lastRetry)),
	}
}

// Run finds out what became of writes until the context ends. It asks about one claim at a time, so that
// those who schedule have their share of the client.
func (w *Writes) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, w.queue.ShutDown)()
	for {
		uid, over := w.queue.Get()
		if over {
			return
		}
		known, err := w.settle(ctx, uid)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("It is still not known what became of the allocation of a claim", "uid", uid, "err", err)
		}
		if known {
			w.queue.Forget(uid)
		} else {
			w.queue.AddRateLimited(uid)
		}
		w.queue.Done(uid)
	}
}

// From are the devices that are in doubt, but for those of one claim, which may be "". When something gets
// known of one of the claims, activate is called with the pod.
func (w *Writes) From(pod *v1.Pod, own types.UID, activate func(*v1.Pod)) []resourceapi.DeviceRequestAllocationResult {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var from []resourceapi.DeviceRequestAllocationResult
	for uid, claim := range w.claims {
		if uid == own {
			continue
		}
		for _, attempt := range claim.attempts {
			from = append(from, attempt.devices...)
		}
		if len(claim.waiting) < maxWaiting {
			claim.waiting[pod.UID] = waiting{pod, activate}
		}
	}
	return from
}

// Any tells whether something is in doubt.
func (w *Writes) Any() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.claims) > 0
}

// Ends is how many writes are not in doubt any more. Who lists allocations and then asks what is in doubt
// may miss what was found to be stored in between: then this has changed.
func (w *Writes) Ends() uint64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.ends
}

// CatchUp reads all claims from the API server, and has the scheduler know of allocations of which its
// watch has not told it yet. A scheduler that begins to lead does that before it allocates anything. Once it
// was successful there is nothing left to do.
func (w *Writes) CatchUp(ctx context.Context) error {
	if w.IsCaughtUp() {
		return nil
	}
	claims, err := w.client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read all ResourceClaims to begin with: %w", err)
	}
	for i := range claims.Items {
		if claim := &claims.Items[i]; claim.Status.Allocation != nil && errors.Is(w.assume(claim), assumecache.ErrNotFound) {
			w.doubt(claim)
		}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.caughtUp = true
	return nil
}

// IsCaughtUp tells whether CatchUp has nothing left to do.
func (w *Writes) IsCaughtUp() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.caughtUp
}

// doubt counts the devices of a claim as in use from now on.
func (w *Writes) doubt(sent *resourceapi.ResourceClaim) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	claim := w.claims[sent.UID]
	if claim == nil {
		claim = &claimInDoubt{namespace: sent.Namespace, name: sent.Name, waiting: map[types.UID]waiting{}}
		w.claims[sent.UID] = claim
	}
	w.begun++
	doubtful := attempt{number: w.begun, version: sent.ResourceVersion, devices: sent.Status.Allocation.Devices.Results, at: w.clock.Now()}
	if i := slices.IndexFunc(claim.attempts, doubtful.isLike); i >= 0 {
		claim.attempts[i] = doubtful
	} else {
		claim.attempts = append(claim.attempts, doubtful)
	}
	w.queue.Add(sent.UID)
}

// isLike tells whether one of two attempts says it all.
func (a attempt) isLike(b attempt) bool {
	return a.version == b.version && reflect.DeepEqual(a.devices, b.devices)
}

// state is which attempts were begun by now, and whether there is room for one more of a claim.
func (w *Writes) state(uid types.UID) (begun uint64, full bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	claim := w.claims[uid]
	return w.begun, claim != nil && len(claim.attempts) >= maxAttempts
}

// settle reads a claim and ends what is not in doubt any more. known is whether nothing is.
func (w *Writes) settle(ctx context.Context, uid types.UID) (known bool, err error) {
	w.mutex.Lock()
	claim, begun := w.claims[uid], w.begun
	w.mutex.Unlock()
	if claim == nil {
		return true, nil
	}
	// Without a resource version it is read from etcd.
	got, err := w.client.ResourceV1().ResourceClaims(claim.namespace).Get(ctx, claim.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && got.UID != uid:
		return w.end(uid, func(a attempt) (Outcome, bool) { return Gone, a.number <= begun }), nil
	case err != nil:
		return false, err
	case got.Status.Allocation != nil:
		if err := w.assume(got); errors.Is(err, assumecache.ErrNotFound) {
			return false, err
		}
		// Any other error is that the scheduler knows of a later version.
		return w.end(uid, func(a attempt) (Outcome, bool) { return Stored, a.number <= begun }), nil
	}
	version := got.ResourceVersion
	if w.isAt(uid, version) {
		got, err = w.fence(ctx, got)
	}
	if err == nil {
		version = got.ResourceVersion
	}
	return w.end(uid, func(a attempt) (Outcome, bool) {
		if a.version != version {
			return NotStored, a.number <= begun
		}
		return GivenUp, a.number <= begun && w.clock.Since(a.at) > untilGivenUp
	}), err
}

// isAt tells whether a write is in doubt that is stored if the claim is still at the version.
func (w *Writes) isAt(uid types.UID, version string) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	claim := w.claims[uid]
	return claim != nil && slices.ContainsFunc(claim.attempts, func(a attempt) bool { return a.version == version })
}

// fence changes a claim that has no devices, so that whatever was sent before is refused from now on. It takes
// the finalizer away that is there for the sake of an allocation: who allocates puts it there again. A claim
// without it is returned as it is.
func (w *Writes) fence(ctx context.Context, claim *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	if !slices.Contains(claim.Finalizers, resourceapi.Finalizer) {
		return claim, nil
	}
	changed := claim.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(name string) bool { return name == resourceapi.Finalizer })
	fenced, err := w.client.ResourceV1().ResourceClaims(claim.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return nil, fmt.Errorf("change claim %s so that its allocation can't be stored any more: %w", klog.KObj(claim), err)
	}
	// The next attempt begins with this version. If the scheduler knows a later one, it begins with that.
	_ = w.assume(fenced)
	return fenced, nil
}

// end ends the attempts of a claim for which outcome says so. none is whether none is left.
func (w *Writes) end(uid types.UID, outcome func(attempt) (Outcome, bool)) (none bool) {
	w.mutex.Lock()
	claim := w.claims[uid]
	if claim == nil {
		w.mutex.Unlock()
		return true
	}
	var ended []Outcome
	claim.attempts = slices.DeleteFunc(claim.attempts, func(a attempt) bool {
		how, over := outcome(a)
		if over {
			ended = append(ended, how)
		}
		return over
	})
	none = len(claim.attempts) == 0
	if none {
		delete(w.claims, uid)
	}
	var refused map[types.UID]waiting
	if len(ended) > 0 {
		w.ends += uint64(len(ended))
		refused, claim.waiting = claim.waiting, map[types.UID]waiting{}
	}
	w.mutex.Unlock()
	for _, how := range ended {
		w.ended(how)
	}
	for _, waiting := range refused {
		waiting.activate(waiting.pod)
	}
	return none
}
