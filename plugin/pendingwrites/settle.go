// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// Outcome is what became of a write whose answer was lost.
type Outcome string

const (
	// Stored means that the claim has devices. The scheduler's list of claims says so by now.
	Stored Outcome = "stored"
	// NotStored means that the claim was written since, here or elsewhere, so that this write is refused.
	NotStored Outcome = "not_stored"
	// Gone means that there is no such claim any more.
	Gone Outcome = "gone"
	// GivenUp means that the claim is as it was, and that the API server has given up the request. It is the end
	// of a claim without the finalizer of allocated claims, which schedulers put there before they allocate.
	GivenUp Outcome = "given_up"

	// unsettled is none.
	unsettled Outcome = ""
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
	// untilAsked is how long the watch may take to deliver what was stored before the API server is asked.
	untilAsked = time.Second
	// catchUpTimeout is for reading all claims from the API server.
	catchUpTimeout = 30 * time.Second
)

// CatchUp reads from the API server what is allocated, and keeps it in use until the watch has delivered it. A
// scheduler does that before it allocates for the first time: an earlier leader may have written last. Afterwards it does
// nothing.
func (w *Writes) CatchUp(ctx context.Context) error {
	w.mutex.Lock()
	caughtUp := w.caughtUp
	w.mutex.Unlock()
	if caughtUp {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	// Without a resource version it is read from etcd.
	claims, err := w.config.Client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read all ResourceClaims to begin with: %w", err)
	}
	for i := range claims.Items {
		if claims.Items[i].Status.Allocation != nil {
			w.assume(&claims.Items[i])
		}
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.caughtUp = true
	return nil
}

// assume notes that a claim has devices.
func (w *Writes) assume(claim *resourceapi.ResourceClaim) {
	if !w.isTold(claim.UID, claim.Namespace, claim.Name, claim.ResourceVersion) {
		w.add(claim, true)
	}
	w.list(claim)
}

// list hands a claim that was read to the scheduler's list. What that does not know yet the watch delivers.
func (w *Writes) list(claim *resourceapi.ResourceClaim) {
	if known, err := w.config.Tracker.Get(claim.Namespace, claim.Name); err != nil || known.ResourceVersion != claim.ResourceVersion {
		_ = w.config.Tracker.AssumeClaimAfterAPICall(claim)
	}
}

// Run settles writes until the context ends. It reads one claim at a time: scheduling has the same client.
func (w *Writes) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, w.queue.ShutDown)()
	for {
		uid, over := w.queue.Get()
		if over {
			return
		}
		settled, err := w.settle(ctx, uid)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("It is still not known what became of the allocation of a claim", "uid", uid, "err", err)
		}
		if settled {
			w.queue.Forget(uid)
		} else {
			w.queue.AddRateLimited(uid)
		}
		w.queue.Done(uid)
	}
}

// settle reads a claim and ends writes of which it says what became of them. settled: none is left.
func (w *Writes) settle(ctx context.Context, uid types.UID) (settled bool, err error) {
	w.mutex.Lock()
	claim, begun := w.claims[uid], w.begun
	settled = claim == nil || w.forgetTold(uid, claim)
	w.mutex.Unlock()
	if settled {
		return true, nil
	}
	got, err := w.config.Client.ResourceV1().ResourceClaims(claim.namespace).Get(ctx, claim.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && got.UID != uid:
		return w.end(uid, begun, func(write) Outcome { return Gone }), nil
	case err != nil:
		return false, err
	case got.Status.Allocation != nil:
		w.assume(got)
		return w.end(uid, begun, func(write) Outcome { return Stored }), nil
	}
	version, err := w.fence(ctx, got)
	return w.end(uid, begun, func(write write) Outcome {
		switch {
		case write.version != version:
			return NotStored
		case w.config.Clock.Since(write.at) > untilGivenUp:
			return GivenUp
		}
		return unsettled
	}), err
}

// fence changes a claim that has no devices if a write is pending for its version, so that the write is refused from now
// on. It removes the finalizer of allocated claims, which is added again before a claim is allocated. It returns the version
// that the claim has then.
func (w *Writes) fence(ctx context.Context, claim *resourceapi.ResourceClaim) (version string, err error) {
	w.mutex.Lock()
	known := w.claims[claim.UID]
	isPending := known != nil && slices.ContainsFunc(known.writes, func(write write) bool { return write.version == claim.ResourceVersion })
	w.mutex.Unlock()
	if !isPending || !slices.Contains(claim.Finalizers, resourceapi.Finalizer) {
		return claim.ResourceVersion, nil
	}
	changed := claim.DeepCopy()
	changed.Finalizers = slices.DeleteFunc(changed.Finalizers, func(name string) bool { return name == resourceapi.Finalizer })
	fenced, err := w.config.Client.ResourceV1().ResourceClaims(claim.Namespace).Update(ctx, changed, metav1.UpdateOptions{})
	if err != nil {
		return claim.ResourceVersion, fmt.Errorf("change claim %s so that its allocation can't be stored any more: %w", klog.KObj(claim), err)
	}
	// The next attempt begins with this version, or with a later one that the scheduler knows.
	w.list(fenced)
	return fenced.ResourceVersion, nil
}

// end ends the writes of a claim, up to a number, that have an outcome, and those that were stored: what was read since
// says more. Pods that may have been refused because of them are tried again. none: no write is left.
func (w *Writes) end(uid types.UID, begun uint64, outcome func(write) Outcome) (none bool) {
	w.mutex.Lock()
	claim := w.claims[uid]
	if claim == nil {
		w.mutex.Unlock()
		return true
	}
	var settled []Outcome
	before := len(claim.writes)
	claim.writes = slices.DeleteFunc(claim.writes, func(write write) bool {
		switch {
		case write.number > begun:
			return false
		case write.stored:
			return true
		}
		how := outcome(write)
		if how != unsettled {
			settled = append(settled, how)
		}
		return how != unsettled
	})
	var retries map[types.UID]func()
	if ended := before - len(claim.writes); ended > 0 {
		w.ends += uint64(ended)
		retries, claim.retries = claim.retries, map[types.UID]func(){}
	}
	none = w.forgetSettled(uid, claim)
	w.mutex.Unlock()
	for _, how := range settled {
		w.config.Settled(how)
	}
	for _, retry := range retries {
		retry()
	}
	return none
}
