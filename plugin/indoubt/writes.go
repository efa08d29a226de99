// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package indoubt

import (
	"context"
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
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
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
	// untilAsked is how long the watch may take to tell of what was stored before the API server is asked.
	untilAsked = time.Second
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
	// claimsHeard are those that the watch has told of.
	claimsHeard Heard
	clock       clock.PassiveClock
	ended       func(Outcome)
	queue       workqueue.TypedRateLimitingInterface[types.UID]

	// mutex guards what follows.
	mutex sync.Mutex
	// claims have something in doubt, or stored that the watch has not told of.
	claims map[types.UID]*claimInDoubt
	// contested are devices that were about to be given to a second claim.
	contested map[DeviceKey]resourceapi.DeviceRequestAllocationResult
	// caughtUp tells that CatchUp has nothing left to do.
	caughtUp bool
	// begun and ends are how many attempts were ever in doubt and how many are not any more.
	begun, ends uint64
}

type claimInDoubt struct {
	namespace, name string
	attempts        []attempt
	// stored is an allocation that is, nil if there is none of which the watch has still to tell.
	stored *stored
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

// stored is an allocation of which the API server has told that it has it.
type stored struct {
	number  uint64
	version string
	devices []resourceapi.DeviceRequestAllocationResult
}

type waiting struct {
	pod      *v1.Pod
	activate func(*v1.Pod)
}

// New returns writes of which none is in doubt. Claims are read with the client, and handed to assume when
// they are found to have devices, which fails if the scheduler does not know the claim yet. heard are the claims
// that the watch has told of. ended is told what became of each write that was in doubt; it may be nil.
func New(client kubernetes.Interface, assume func(*resourceapi.ResourceClaim) error, heard Heard, clock clock.PassiveClock, ended func(Outcome)) *Writes {
	if ended == nil {
		ended = func(Outcome) {}
	}
	return &Writes{
		client: client, assume: assume, claimsHeard: heard, clock: clock, ended: ended,
		claims: map[types.UID]*claimInDoubt{}, contested: map[DeviceKey]resourceapi.DeviceRequestAllocationResult{},
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

// From are the devices that nobody else may have, but for those of one claim, which may be "". When something gets
// known of one of the claims, activate is called with the pod.
func (w *Writes) From(pod *v1.Pod, own types.UID, activate func(*v1.Pod)) []resourceapi.DeviceRequestAllocationResult {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	from := w.contestedBy(own)
	for uid, claim := range w.claims {
		if uid == own || w.forgetHeard(uid, claim) {
			continue
		}
		for _, attempt := range claim.attempts {
			from = append(from, attempt.devices...)
		}
		if claim.stored != nil {
			from = append(from, claim.stored.devices...)
		}
		if len(claim.waiting) < maxWaiting {
			claim.waiting[pod.UID] = waiting{pod, activate}
		}
	}
	return from
}

// forgetHeard forgets what is stored if the watch has told of it, and tells whether nothing else is kept. The
// mutex is locked.
func (w *Writes) forgetHeard(uid types.UID, claim *claimInDoubt) (none bool) {
	if claim.stored != nil && w.isHeard(uid, claim.namespace, claim.name, claim.stored.version) {
		claim.stored = nil
		w.ends++
	}
	return w.drop(uid)
}

// Any tells whether something is kept.
func (w *Writes) Any() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.claims) > 0 || len(w.contested) > 0
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
		claim := &claims.Items[i]
		if claim.Status.Allocation == nil || w.isHeard(claim.UID, claim.Namespace, claim.Name, claim.ResourceVersion) {
			continue
		}
		w.keepUntilHeard(claim)
		// If the scheduler does not know it yet, the watch will tell.
		_ = w.assume(claim)
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

// keepUntilHeard counts the devices of a claim as in use until the watch has told of them, or the claim is found
// to have none any more. That the scheduler's list has them is not enough: upstream has one set of devices for all
// claims, and what the watch has still to tell of an earlier claim with a device takes it away for all. Answers may
// come in another order than what they tell of: an older one says nothing.
func (w *Writes) keepUntilHeard(claim *resourceapi.ResourceClaim) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	kept := w.at(claim)
	if kept.stored != nil && isOlder(claim.ResourceVersion, kept.stored.version) {
		return
	}
	w.begun++
	kept.stored = &stored{number: w.begun, version: claim.ResourceVersion, devices: claim.Status.Allocation.Devices.Results}
	w.queue.AddAfter(claim.UID, untilAsked)
}

// isHeard tells whether the watch has told of a claim as it was stored, or of what came after.
func (w *Writes) isHeard(uid types.UID, namespace, name, version string) bool {
	heard := w.claimsHeard.Get(namespace, name)
	return heard != nil && heard.UID == uid && !isOlder(heard.ResourceVersion, version)
}

// isOlder compares the versions of one claim.
func isOlder(version, than string) bool {
	if version == than {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order < 0
}

// drop forgets a claim of which nothing is kept. The mutex is locked.
func (w *Writes) drop(uid types.UID) (none bool) {
	claim := w.claims[uid]
	if none = claim == nil || len(claim.attempts) == 0 && claim.stored == nil; none {
		delete(w.claims, uid)
	}
	return none
}

// at is what is kept of a claim. The mutex is locked.
func (w *Writes) at(claim *resourceapi.ResourceClaim) *claimInDoubt {
	kept := w.claims[claim.UID]
	if kept == nil {
		kept = &claimInDoubt{namespace: claim.Namespace, name: claim.Name, waiting: map[types.UID]waiting{}}
		w.claims[claim.UID] = kept
	}
	return kept
}

// doubt counts the devices of a claim as in use from now on.
func (w *Writes) doubt(sent *resourceapi.ResourceClaim) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	claim := w.at(sent)
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
	none := claim == nil || w.forgetHeard(uid, claim)
	w.mutex.Unlock()
	if none {
		return true, nil
	}
	// Without a resource version it is read from etcd.
	got, err := w.client.ResourceV1().ResourceClaims(claim.namespace).Get(ctx, claim.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && got.UID != uid:
		return w.end(uid, begun, func(a attempt) (Outcome, bool) { return Gone, a.number <= begun }), nil
	case err != nil:
		return false, err
	case got.Status.Allocation != nil:
		// An error is that the scheduler does not know of it yet, or of a later version.
		_ = w.assume(got)
		if !w.isHeard(uid, got.Namespace, got.Name, got.ResourceVersion) {
			w.keepUntilHeard(got)
		}
		return w.end(uid, begun, func(a attempt) (Outcome, bool) { return Stored, a.number <= begun }), nil
	}
	version := got.ResourceVersion
	if w.isAt(uid, version) {
		got, err = w.fence(ctx, got)
	}
	if err == nil {
		version = got.ResourceVersion
	}
	return w.end(uid, begun, func(a attempt) (Outcome, bool) {
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

// end ends the attempts of a claim for which outcome says so, and keeps no longer what was found to be stored up to a
// number. none is whether nothing is left.
func (w *Writes) end(uid types.UID, before uint64, outcome func(attempt) (Outcome, bool)) (none bool) {
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
	over := len(ended)
	if claim.stored != nil && claim.stored.number <= before {
		claim.stored = nil
		over++
	}
	none = w.drop(uid)
	var refused map[types.UID]waiting
	if over > 0 {
		w.ends += uint64(over)
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
