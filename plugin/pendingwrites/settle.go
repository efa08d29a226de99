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

// Outcome is the result of a write whose response was lost.
type Outcome string

const (
	// Stored means that the claim has devices. They are then also in the scheduler's list of claims.
	Stored Outcome = "stored"
	// NotStored means that the claim has a newer version, so that the API server rejects this write.
	NotStored Outcome = "not_stored"
	// Gone means that the claim does not exist any more.
	Gone Outcome = "gone"
	// GivenUp means that the claim is unchanged and that the API server has given up the request. It happens only if the claim
	// lacks the finalizer of allocated claims. Schedulers add that finalizer before they allocate.
	GivenUp Outcome = "given_up"

	// unsettled means that the API server may still store the write.
	unsettled Outcome = ""
)

// Outcomes lists the outcomes of settled writes.
var Outcomes = []Outcome{Stored, NotStored, Gone, GivenUp}

const (
	// untilGivenUp is the time after which the API server can't execute a request any more. It gives up a request after its
	// --request-timeout, by default a minute.
	untilGivenUp = 90 * time.Second
	// firstRetry and lastRetry are the shortest and the longest delay between two reads of a claim. The first read has no delay.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Second
	// untilAsked is how long the watch may take to deliver a stored write. After that, the claim is read from the API server.
	untilAsked = time.Second
	// catchUpTimeout is the timeout for reading all claims from the API server.
	catchUpTimeout = 30 * time.Second
)

// CatchUp reads all allocations from the API server, and counts their devices as in use until the watch has delivered the
// claims. A scheduler calls it before its first allocation, because an earlier leader may have written last. Later calls do
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
	// Without a resource version in the options, the API server reads the list from etcd, not from its cache.
	claims, err := w.config.Client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read all ResourceClaims at start: %w", err)
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

// assume counts the devices of a claim, as read from the API server, as in use.
func (w *Writes) assume(claim *resourceapi.ResourceClaim) {
	if !w.isDelivered(claim.UID, claim.Namespace, claim.Name, claim.ResourceVersion) {
		w.add(claim, true)
	}
	w.list(claim)
}

// list updates the claim in the scheduler's list to the version that was read. If the list does not contain the claim yet, the
// watch will add it.
func (w *Writes) list(claim *resourceapi.ResourceClaim) {
	if known, err := w.config.Tracker.Get(claim.Namespace, claim.Name); err != nil || known.ResourceVersion != claim.ResourceVersion {
		_ = w.config.Tracker.AssumeClaimAfterAPICall(claim)
	}
}

// Run settles writes until ctx is done. It reads one claim at a time, because scheduling cycles use the same client.
func (w *Writes) Run(ctx context.Context) {
	defer context.AfterFunc(ctx, w.queue.ShutDown)()
	for {
		uid, over := w.queue.Get()
		if over {
			return
		}
		settled, err := w.settle(ctx, uid)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("It is still unknown whether the allocation of a claim was stored", "uid", uid, "err", err)
		}
		if settled {
			w.queue.Forget(uid)
		} else {
			w.queue.AddRateLimited(uid)
		}
		w.queue.Done(uid)
	}
}

// settle reads a claim from the API server, and ends the writes whose result is then known. settled is true if the claim has no
// pending writes left.
func (w *Writes) settle(ctx context.Context, uid types.UID) (settled bool, err error) {
	w.mutex.Lock()
	claim, begun := w.claims[uid], w.lastNumber
	settled = claim == nil || w.forgetDelivered(uid, claim)
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

// fence makes the API server reject a late write of a claim. If a write is pending for the claim's current version, fence
// removes the finalizer of allocated claims, which changes the version. Schedulers add that finalizer again before an
// allocation. fence returns the claim's new version.
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
		return claim.ResourceVersion, fmt.Errorf("update claim %s so that a late write of its allocation is rejected: %w", klog.KObj(claim), err)
	}
	// The scheduler's list must have the new version, because the next attempt to allocate the claim starts from that list.
	w.list(fenced)
	return fenced.ResourceVersion, nil
}

// end ends pending writes of a claim, up to the write with the given number. It ends all confirmed writes, because the caller
// has a newer version of the claim. It ends another write if outcome does not return unsettled. If a write has ended, end
// activates the pods that wait for the claim's writes. none reports whether the claim has no pending writes left.
func (w *Writes) end(uid types.UID, number uint64, outcome func(write) Outcome) (none bool) {
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
		case write.number > number:
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
