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

// worker decides the Placements of the usual or the slow queue.
type worker struct {
	*reconciler
	slow bool
}

// Reconcile decides a Placement. If the Placement belongs to the other queue, Reconcile only passes it on.
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

// reconcile decides a Placement. It writes the PlacementDecisions of Open Cluster Management, then the PlacementDecisions of
// SIG Multicluster, and then the Placement's status. If the turn ends before the evaluations are complete, it writes nothing,
// and the Placement continues after other Placements had a turn.
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
	// A later reconciliation removes the scheduler's data only if a record exists. So the record must exist before the data.
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
	// From here on a worker of the other queue may decide the Placement.
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

// prepare compiles the expressions of a Placement in the background, where namespaces take turns, and then queues the
// Placement. So workers never compile expressions of tenants. A Placement that was deleted meanwhile is not compiled.
func (r *reconciler) prepare(request reconcile.Request, uid types.UID) {
	r.usual.background.Add(request.Namespace, request, func(ctx context.Context) {
		object, err := r.placement(ctx, request.NamespacedName)
		if err != nil || object.UID != uid {
			return
		}
		if err := r.scheduler.Prepare(ctx, object); err != nil {
			log.FromContext(ctx).V(1).Info("Could not prepare the expressions", "err", err)
		}
		// If the Placement was deleted during the compilation, its data may have been removed before the compilation stored more.
		if now, err := r.placement(ctx, request.NamespacedName); apierrors.IsNotFound(err) || err == nil && now.UID != uid {
			r.scheduler.Forget(uid)
		}
	}, func() { r.usual.add(request) })
}

// unchanged reports whether the hub has the last decision and the cluster changes since then don't affect it. If it returns
// false, the time of this check counts as evaluation time of the Placement.
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

// judge returns the verdict on a Placement after its turn. If the attempt failed with an error, the pace stays unchanged.
func (r *reconciler) judge(object *clusterv1beta1.Placement, result *placement.Result, err error) (verdict verdict) {
	if err != nil {
		result = nil
	}
	now := r.now()
	r.records.change(object, func(known *record) { verdict = known.judge(r.records.timeouts, result, now) })
	return verdict
}

// placement reads a Placement from the cache. If the cache lacks the status that this controller wrote last, placement reads
// from the API server: the status says when scores may be recorded again.
func (r *reconciler) placement(ctx context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error) {
	result := &clusterv1beta1.Placement{}
	if err := r.client.Get(ctx, key, result); err != nil || !r.records.behind(result) {
		return result, err
	}
	return r.live(ctx, key)
}

// longestSleep is the longest time after which a Placement whose result depends on the time is decided again. Timers don't
// notice changes of the clock or the sleep of a machine. A needless decision costs little.
const longestSleep = 10 * time.Minute

// outcome returns when the Placement must be decided again. Errors are retried with growing delays. A conflict only means that
// the cache is not up to date, so it is retried after a short constant delay.
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

// schedule decides a Placement. If the Placement reads other scores than before, schedule repeats the decision, because changes
// of these scores may have been missed.
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

// attempt decides a Placement within the time limit of its turn.
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

// settle decides a Placement, and writes its PlacementDecisions if they differ from the decision. written is true if it wrote.
// result is nil if there is nothing to report. It may be set together with an error.
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
	// The cache was not up to date. The selection depends on the former selection, so the Placement is decided again.
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
		// The status must not report decisions that are not written, so an event reports the error.
		r.events.Eventf(object, nil, corev1.EventTypeWarning, wellknown.ReasonDecisionFailed, wellknown.ActionDeciding, "%s", clip(err.Error()))
		if foreign := (*foreignError)(nil); errors.As(err, &foreign) {
			result.KeepFormer(object, foreign.misconfiguration())
			return result, true, err
		}
		return nil, true, err
	}
	return result, true, nil
}

// checkCurrent returns a conflict if the Placement was deleted, changed or assigned to another scheduler after it was cached.
// The cache may have received changed clusters before the changed Placement.
func (r *reconciler) checkCurrent(ctx context.Context, object *clusterv1beta1.Placement) error {
	live, err := r.live(ctx, client.ObjectKeyFromObject(object))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Placement %s/%s: %w", object.Namespace, object.Name, err)
	}
	if err != nil || live.UID != object.UID || live.Generation != object.Generation || !placement.Responsible(live, r.all) {
		return apierrors.NewConflict(clusterv1beta1.Resource("placements"), object.Name, errors.New("the Placement has changed since it was decided"))
	}
	return nil
}

// catchUp lists the PlacementDecisions of a Placement, but only before the first write and after a failed write. behind reports
// whether known was outdated. At other times the ledger is complete: it has the controller's own writes, and no other program
// writes these objects. Each update and deletion has the object's version in the ledger as a precondition.
func (r *reconciler) catchUp(ctx context.Context, object *clusterv1beta1.Placement, known *[]*clusterv1beta1.PlacementDecision) (behind bool, err error) {
	if r.records.get(object).listed {
		return false, nil
	}
	defer r.ledger.expectAnswer()()
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

// sameVersions reports whether both lists have the same objects in the same versions. Both must be sorted by name.
func sameVersions(known, listed []*clusterv1beta1.PlacementDecision) bool {
	return slices.EqualFunc(known, listed, func(a, b *clusterv1beta1.PlacementDecision) bool {
		return a.Name == b.Name && a.ResourceVersion == b.ResourceVersion
	})
}

// report writes the status of a Placement and events about the result. If the spec has changed meanwhile, it leaves the status
// to the next decision.
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
