// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
)

// worker decides the Placements of one queue.
type worker struct {
	*reconciler
	slow bool
}

// Reconcile decides a Placement, or hands it over to the other queue.
func (w worker) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	slow := w.records.named(request.NamespacedName).slow
	if slow == w.slow {
		return w.reconcile(ctx, request)
	}
	w.laneOf(slow).add(request)
	return reconcile.Result{}, nil
}

func (r *reconciler) laneOf(slow bool) *lane {
	if slow {
		return &r.slow
	}
	return &r.usual
}

// reconcile decides a Placement, writes its PlacementDecisions and then its status. Those of
// SIG Multicluster are written after those of Open Cluster Management. If
// there is more to evaluate than it has time for, nothing is written, and it goes on when
// others had their turn.
func (r *reconciler) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object, err := r.placement(ctx, request.NamespacedName)
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	known := r.records.named(request.NamespacedName).uid
	responsible := err == nil && placement.Responsible(object, r.all)
	if known != "" && (!responsible || known != object.UID) {
		r.scheduler.Forget(known)
		r.ledger.forget(request.NamespacedName)
	}
	if !responsible {
		r.records.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	// What is going to be known of the Placement is forgotten with it.
	r.records.change(object, func(*record) {})
	if !r.scheduler.Prepared(object) {
		r.prepare(request, object.UID)
		return reconcile.Result{}, nil
	}
	if unchanged, requeue, err := r.unchanged(ctx, object); err != nil {
		return reconcile.Result{}, err
	} else if unchanged {
		r.observer.ObserveTurn(TurnUnchanged, r.records.get(object).slow)
		return r.outcome(&placement.Result{Requeue: requeue}, nil)
	}
	result, written, err := r.settle(ctx, object)
	if err == nil {
		err = r.publish(ctx, object, result)
	}
	verdict := r.judge(object, result, err)
	if result != nil && verdict.turn != TurnContinued {
		err = errors.Join(err, r.report(ctx, object, result))
	}
	if err == nil && result != nil && (verdict.turn != TurnContinued || verdict.delay == 0) {
		r.observer.ObserveTurn(verdict.turn, r.records.get(object).slow)
	}
	if err == nil && result != nil && verdict.turn == TurnDone && !written {
		r.scheduler.Confirm(object, result)
	}
	// Then a worker of the other queue may have it.
	r.records.change(object, func(known *record) { known.slow = verdict.slow })
	if verdict.turn == TurnContinued && verdict.delay == 0 {
		r.slow.add(request)
		return reconcile.Result{}, nil
	}
	if verdict.turn != TurnDone && err == nil {
		return reconcile.Result{RequeueAfter: verdict.delay}, nil
	}
	return r.outcome(result, err)
}

// prepare has the expressions of a Placement compiled, in turns of namespaces, and the Placement decided
// then: a worker compiles nothing that tenants write. What is gone by then is not kept until its turn.
func (r *reconciler) prepare(request reconcile.Request, uid types.UID) {
	r.usual.background.Add(request.Namespace, request, func(ctx context.Context) {
		object, err := r.placement(ctx, request.NamespacedName)
		if err != nil || object.UID != uid {
			return
		}
		if err := r.scheduler.Prepare(ctx, object); err != nil {
			log.FromContext(ctx).V(1).Info("Not prepared", "err", err)
		}
		// It may have gone meanwhile, and been forgotten before.
		if now, err := r.placement(ctx, request.NamespacedName); apierrors.IsNotFound(err) || err == nil && now.UID != uid {
			r.scheduler.Forget(uid)
		}
	}, func() { r.usual.add(request) })
}

// unchanged reports whether there is nothing to decide: the hub has what was decided last, and
// clusters that have changed since make no difference. Time that was spent in vain counts.
func (r *reconciler) unchanged(ctx context.Context, object *clusterv1beta1.Placement) (unchanged bool, requeue time.Time, err error) {
	if r.profiles != "" {
		if published, err := r.isPublished(ctx, object); err != nil || !published {
			return false, time.Time{}, err
		}
	}
	snapshot, err := r.snapshot(ctx, object.Namespace)
	if err != nil {
		return false, time.Time{}, err
	}
	start := r.now()
	limited, cancel := placement.WithDeadline(ctx, r.records.get(object).turn(r.records.timeouts, start), r.records.timeouts.Total)
	defer cancel()
	if unchanged, requeue = r.scheduler.Unchanged(limited, object, snapshot, start); !unchanged {
		took := r.now().Sub(start)
		r.records.change(object, func(known *record) { known.spend(took, false) })
	}
	return unchanged, requeue, nil
}

// judge says what becomes of a Placement. What was not decided for another reason than
// time says nothing of how long it takes.
func (r *reconciler) judge(object *clusterv1beta1.Placement, result *placement.Result, err error) (verdict verdict) {
	if err != nil {
		result = nil
	}
	now := r.now()
	r.records.change(object, func(known *record) { verdict = known.judge(r.records.timeouts, result, now) })
	return verdict
}

// placement gets a Placement, from the API server if the cache does not have the
// status that was written last: when scores may be recorded depends on it.
func (r *reconciler) placement(ctx context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error) {
	result := &clusterv1beta1.Placement{}
	if err := r.client.Get(ctx, key, result); err != nil || !r.records.behind(result) {
		return result, err
	}
	return r.live(ctx, key)
}

// longestSleep is after how long a Placement that time changes is decided again at the latest.
// Timers don't notice that the clock of the machine was put forward or back, or that the
// machine was asleep. Where nothing has changed it costs little.
const longestSleep = 10 * time.Minute

// outcome says when to decide a Placement again. Errors are tried again after a while
// that grows; a conflict is no error but a cache that is behind.
func (r *reconciler) outcome(result *placement.Result, err error) (reconcile.Result, error) {
	const behind = 50 * time.Millisecond
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: behind}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reconcile.Result{}, nil
	case err != nil || result.Requeue.IsZero():
		return reconcile.Result{}, err
	default:
		return reconcile.Result{RequeueAfter: min(max(result.Requeue.Sub(r.now()), time.Millisecond), longestSleep)}, nil
	}
}

// schedule decides a Placement. It does so once more where scores turn out to be read
// of which changes were not looked for before.
func (r *reconciler) schedule(ctx context.Context, object *clusterv1beta1.Placement) (*placement.Result, error) {
	for {
		snapshot, err := r.snapshot(ctx, object.Namespace)
		if err != nil {
			return nil, err
		}
		result, err := r.attempt(ctx, object, snapshot)
		if !r.records.read(object, result.Reads, result.NamesSets) || err != nil || result.Overrun != nil {
			return result, err
		}
	}
}

// attempt lets the evaluations take as long as they may now.
func (r *reconciler) attempt(ctx context.Context, object *clusterv1beta1.Placement, snapshot *placement.Snapshot) (*placement.Result, error) {
	start := r.now()
	turn := r.records.get(object).turn(r.records.timeouts, start)
	limited, cancel := placement.WithDeadline(ctx, turn, r.records.timeouts.Total)
	defer cancel()
	result, err := r.scheduler.Schedule(limited, object, snapshot, start)
	if err == nil && turn > 0 {
		took := r.now().Sub(start)
		r.records.change(object, func(known *record) { known.spend(took, result.Overrun == nil) })
	}
	return result, err
}

// settle decides a Placement and writes its PlacementDecisions, if they have to be written. The result
// is nil if there is nothing to report; with an error there may be something.
func (r *reconciler) settle(ctx context.Context, object *clusterv1beta1.Placement) (result *placement.Result, written bool, err error) {
	result, err = r.schedule(ctx, object)
	if err != nil || result.Decision == nil {
		return result, false, err
	}
	former := r.ledger.of(client.ObjectKeyFromObject(object))
	steps := placement.Updates(former, result.Decision.Objects(object))
	if len(steps) == 0 {
		return result, false, nil
	}
	behind, err := r.catchUp(ctx, object, &former)
	if err != nil {
		return nil, false, err
	}
	// What the cache had was no basis to decide on if it was behind, because who is
	// selected depends on who was.
	if behind {
		if result, err = r.schedule(ctx, object); err != nil || result.Decision == nil {
			return result, false, err
		}
		steps = placement.Updates(former, result.Decision.Objects(object))
	}
	if err := r.checkCurrent(ctx, object); err != nil {
		return nil, false, err
	}
	end := r.observer.ObserveWriting()
	err = r.write(ctx, object, result, former, steps)
	end(err)
	if err != nil {
		r.records.change(object, func(known *record) { known.listed = false })
		// The status would tell of decisions that are not there yet.
		r.events.Eventf(object, nil, corev1.EventTypeWarning, wellknown.ReasonDecisionFailed, wellknown.ActionDeciding, "%s", clip(err.Error()))
		if foreign := (*foreignError)(nil); errors.As(err, &foreign) {
			result.Stand(object, foreign.misconfiguration())
			return result, true, err
		}
		return nil, true, err
	}
	return result, true, nil
}

// checkCurrent returns a conflict if the Placement was deleted, handed over or asks for
// something else, and the cache does not know yet: clusters may be ahead of Placements in it.
func (r *reconciler) checkCurrent(ctx context.Context, object *clusterv1beta1.Placement) error {
	live, err := r.live(ctx, client.ObjectKeyFromObject(object))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Placement %s/%s: %w", object.Namespace, object.Name, err)
	}
	if err != nil || live.UID != object.UID || live.Generation != object.Generation || !placement.Responsible(live, r.all) {
		return apierrors.NewConflict(clusterv1beta1.Resource("placements"), object.Name, errors.New("it has changed since it was decided"))
	}
	return nil
}

// catchUp lists the PlacementDecisions of a Placement the first time that something is
// to be written, and after a write that has failed, and tells whether known was not all.
// Later the ledger has what was written here, and nobody else writes: no object is
// changed or deleted in a version that it does not have.
func (r *reconciler) catchUp(ctx context.Context, object *clusterv1beta1.Placement, known *[]*clusterv1beta1.PlacementDecision) (behind bool, err error) {
	if r.records.get(object).listed {
		return false, nil
	}
	defer r.ledger.await()()
	key := client.ObjectKeyFromObject(object)
	live, version, err := decisionsOf(ctx, r.reader, key)
	if err != nil {
		return false, err
	}
	r.ledger.list(key, live, version)
	behind = !sameVersions(*known, live)
	*known = live
	r.records.change(object, func(known *record) { known.listed = true })
	return behind, nil
}

// sameVersions tells whether the objects that were listed are those that were known. Both are
// sorted by name.
func sameVersions(known, listed []*clusterv1beta1.PlacementDecision) bool {
	return slices.EqualFunc(known, listed, func(a, b *clusterv1beta1.PlacementDecision) bool {
		return a.Name == b.Name && a.ResourceVersion == b.ResourceVersion
	})
}

// report writes the status of a Placement and events about it. If the spec has
// changed meanwhile, it is left to the next decision.
func (r *reconciler) report(ctx context.Context, object *clusterv1beta1.Placement, result *placement.Result) error {
	key := client.ObjectKeyFromObject(object)
	r.warn(object, r.records.warn(object, result.Warnings))
	current := object
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		err := r.patchStatus(ctx, current, result)
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
		live, failed := r.live(ctx, key)
		switch {
		case failed != nil:
			return client.IgnoreNotFound(failed)
		case live.UID != object.UID || live.Generation != object.Generation:
			return nil
		}
		current = live
		return err
	})
	if err != nil {
		return fmt.Errorf("update the status of Placement %s: %w", key, err)
	}
	return nil
}

func (r *reconciler) live(ctx context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error) {
	result := &clusterv1beta1.Placement{}
	err := r.reader.Get(ctx, key, result)
	return result, err
}

func (r *reconciler) patchStatus(ctx context.Context, object *clusterv1beta1.Placement, result *placement.Result) error {
	wanted := object.DeepCopy()
	wanted.Status = result.ApplyTo(object.Status)
	if equality.Semantic.DeepEqual(wanted.Status, object.Status) {
		return nil
	}
	err := r.client.Status().Patch(ctx, wanted, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		r.records.change(object, func(known *record) { known.version = wanted.ResourceVersion })
	}
	return err
}
