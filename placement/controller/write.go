// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement"
)

// writing is one series of writes to the PlacementDecisions of a Placement.
type writing struct {
	*reconciler
	placement *clusterv1beta1.Placement
	// live maps names to the current PlacementDecisions.
	live    map[string]*clusterv1beta1.PlacementDecision
	decided bool
}

// write takes the steps that make the live PlacementDecisions match a result. It stops at the first step that fails, because
// later steps may remove clusters that the failed step should have added elsewhere.
func (r *reconciler) write(ctx context.Context, object *clusterv1beta1.Placement, result *placement.Result, live []*clusterv1beta1.PlacementDecision, steps []placement.Step) error {
	w := &writing{reconciler: r, placement: object, live: make(map[string]*clusterv1beta1.PlacementDecision, len(live))}
	for _, decision := range live {
		w.live[decision.Name] = decision
	}
	for _, step := range steps {
		if err := w.take(ctx, step); err != nil {
			return err
		}
	}
	if w.decided {
		r.scored(object, result)
	}
	return nil
}

func (w *writing) take(ctx context.Context, step placement.Step) error {
	defer w.ledger.expectAnswer()()
	from := w.live[step.Object.Name]
	switch {
	case step.Delete:
		return w.delete(ctx, from)
	case from == nil:
		return w.create(ctx, step.Object)
	default:
		return w.update(ctx, from, step.Object)
	}
}

// create creates an object and then patches its status, because the API server ignores the status in a create request.
func (w *writing) create(ctx context.Context, wanted *clusterv1beta1.PlacementDecision) error {
	object := wanted.DeepCopy()
	err := w.client.Create(ctx, object)
	switch {
	case apierrors.IsAlreadyExists(err):
		return w.adopt(ctx, wanted)
	case err != nil:
		return fmt.Errorf("create PlacementDecision %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	w.created(w.placement, object)
	w.note(object)
	return w.patchDecisions(ctx, object, wanted)
}

// adopt restores the label of an object that belongs to the Placement. It never returns nil, because the steps were computed
// without the clusters of this object. If the object already has the label, another process has just created it.
func (w *writing) adopt(ctx context.Context, wanted *clusterv1beta1.PlacementDecision) error {
	object := &clusterv1beta1.PlacementDecision{}
	if err := w.reader.Get(ctx, client.ObjectKeyFromObject(wanted), object); err != nil {
		return fmt.Errorf("get PlacementDecision %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	if object.Labels[clusterv1beta1.PlacementLabel] != w.placement.Name {
		if !metav1.IsControlledBy(object, w.placement) {
			return &foreignError{object, w.placement, ""}
		}
		from := object.DeepCopy()
		object.Labels = merged(object.Labels, map[string]string{clusterv1beta1.PlacementLabel: w.placement.Name})
		if err := w.client.Patch(ctx, object, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("update PlacementDecision %s/%s: %w", wanted.Namespace, wanted.Name, err)
		}
	}
	return apierrors.NewConflict(clusterv1beta1.Resource("placementdecisions"), object.Name, errNotListed)
}

// errNotListed is the error for an object that exists but was not listed before the steps were computed.
var errNotListed = errors.New("the PlacementDecision was not listed before; the controller lists the PlacementDecisions again")

// merged adds others to into and returns the result. Values in others win.
func merged(into, others map[string]string) map[string]string {
	if into == nil {
		into = map[string]string{}
	}
	maps.Copy(into, others)
	return into
}

// foreignError is the error if a PlacementDecision of another owner has a name that the Placement needs.
type foreignError struct {
	decision  client.Object
	placement *clusterv1beta1.Placement
	// group is the API group of the decision. It is empty for Open Cluster Management.
	group string
}

func (e *foreignError) Error() string {
	of := ""
	if e.group != "" {
		of = " of " + e.group
	}
	return fmt.Sprintf("PlacementDecision %s/%s%s does not belong to Placement %s, but has the name of one of its decisions; delete the PlacementDecision, or rename the Placement",
		e.decision.GetNamespace(), e.decision.GetName(), of, e.placement.Name)
}

// misconfiguration returns the error as a mistake in the name of the Placement.
func (e *foreignError) misconfiguration() *placement.Misconfiguration {
	return &placement.Misconfiguration{Plugin: placement.Selection, Path: field.NewPath("metadata", "name"), Err: e}
}

// update writes labels and owners first and then the decisions, so that a reader who selects by label never finds new decisions
// under old labels.
func (w *writing) update(ctx context.Context, from, wanted *clusterv1beta1.PlacementDecision) error {
	object := from.DeepCopy()
	object.Labels, object.Annotations = merged(object.Labels, wanted.Labels), merged(object.Annotations, wanted.Annotations)
	object.OwnerReferences = wanted.OwnerReferences
	if !equality.Semantic.DeepEqual(object.ObjectMeta, from.ObjectMeta) {
		if err := w.client.Patch(ctx, object, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("update PlacementDecision %s/%s: %w", wanted.Namespace, wanted.Name, err)
		}
		w.note(object)
	}
	if equality.Semantic.DeepEqual(object.Status.Decisions, wanted.Status.Decisions) {
		return nil
	}
	if err := w.patchDecisions(ctx, object, wanted); err != nil {
		return err
	}
	w.updated(w.placement, object)
	return nil
}

// patchDecisions writes the decisions of an object. It also writes an empty list.
func (w *writing) patchDecisions(ctx context.Context, from, wanted *clusterv1beta1.PlacementDecision) error {
	object := from.DeepCopy()
	object.Status.Decisions = wanted.Status.Decisions
	if err := w.client.Status().Patch(ctx, object, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update the decisions of PlacementDecision %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	w.note(object)
	w.decided = true
	return nil
}

// delete deletes an object unless its version has changed. If the object is already gone, delete records no event.
func (w *writing) delete(ctx context.Context, object *clusterv1beta1.PlacementDecision) error {
	err := w.client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete PlacementDecision %s/%s: %w", object.Namespace, object.Name, err)
	}
	if err == nil {
		w.deleted(w.placement, object)
	}
	w.ledger.delete(object)
	delete(w.live, object.Name)
	w.decided = true
	return nil
}

// note stores the version of an object that the API server returned.
func (w *writing) note(object *clusterv1beta1.PlacementDecision) {
	w.live[object.Name] = object
	w.ledger.set(object)
}
