// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
)

// Decisions are also published as PlacementDecisions of SIG Multicluster. Each of these objects mirrors a PlacementDecision of
// Open Cluster Management, with the same name and clusters. The steps from the current to the wanted objects are the same for
// both kinds. So the current objects of SIG Multicluster are converted, and [placement.Updates] computes the steps.

// publishing is one series of writes to the PlacementDecisions of SIG Multicluster for a Placement.
type publishing struct {
	*reconciler
	placement *clusterv1beta1.Placement
	// live maps names to the current objects of SIG Multicluster.
	live map[string]*profilev1alpha1.PlacementDecision
}

// publish writes the PlacementDecisions of SIG Multicluster for a result. It does nothing if they are disabled or if the result
// has no decision. It stops at the first step that fails. If an object of another owner has a needed name, the result reports a
// misconfiguration.
func (r *reconciler) publish(ctx context.Context, object *clusterv1beta1.Placement, result *placement.Result) error {
	if r.profiles == "" || result == nil || result.Decision == nil {
		return nil
	}
	p := &publishing{reconciler: r, placement: object}
	wanted := p.wanted(result.Decision)
	for _, reader := range []client.Reader{r.client, r.reader} {
		if err := p.list(ctx, reader); err != nil {
			return err
		}
		if len(placement.Updates(p.read(), wanted)) == 0 {
			r.records.change(object, func(known *record) { known.published = p.versions() })
			return nil
		}
	}
	if err := r.checkCurrent(ctx, object); err != nil {
		return err
	}
	for _, step := range placement.Updates(p.read(), wanted) {
		if err := p.take(ctx, step); err != nil {
			r.events.Eventf(object, nil, corev1.EventTypeWarning, wellknown.ReasonDecisionFailed, wellknown.ActionDeciding, "%s", clip(err.Error()))
			if foreign := (*foreignError)(nil); errors.As(err, &foreign) {
				result.Misconfigured(object, foreign.misconfiguration())
			}
			return err
		}
	}
	return nil
}

// isPublished reports whether the PlacementDecisions of SIG Multicluster are unchanged since they last matched the decision.
func (r *reconciler) isPublished(ctx context.Context, object *clusterv1beta1.Placement) (bool, error) {
	p := &publishing{reconciler: r, placement: object}
	if err := p.list(ctx, r.client); err != nil {
		return false, err
	}
	published := r.records.get(object).published
	return published != nil && maps.Equal(published, p.versions()), nil
}

// versions maps the names of the live objects to their resource versions.
func (p *publishing) versions() map[string]string {
	versions := make(map[string]string, len(p.live))
	for name, object := range p.live {
		versions[name] = object.ResourceVersion
	}
	return versions
}

// wanted returns the PlacementDecisions of a decision with the labels of both APIs. Scores are left out, because objects of SIG
// Multicluster have no scores.
func (p *publishing) wanted(decision *placement.Decision) []*clusterv1beta1.PlacementDecision {
	result := decision.Objects(p.placement)
	for i, object := range result {
		object.Labels[profilev1alpha1.DecisionKeyLabel] = p.placement.Name
		object.Labels[profilev1alpha1.DecisionIndexLabel] = strconv.Itoa(i)
		for j := range object.Status.Decisions {
			object.Status.Decisions[j].Score = 0
		}
	}
	return result
}

// list reads the Placement's objects of SIG Multicluster into live. It ignores an object that has the Placement's label but an
// owner with another UID.
func (p *publishing) list(ctx context.Context, reader client.Reader) error {
	var list profilev1alpha1.PlacementDecisionList
	err := reader.List(ctx, &list, client.InNamespace(p.placement.Namespace), client.UnsafeDisableDeepCopy,
		client.MatchingLabels{profilev1alpha1.DecisionKeyLabel: p.placement.Name})
	if err != nil {
		return fmt.Errorf("list PlacementDecisions of %s of Placement %s: %w", profilev1alpha1.Group, client.ObjectKeyFromObject(p.placement), err)
	}
	p.live = map[string]*profilev1alpha1.PlacementDecision{}
	for i := range list.Items {
		if object := &list.Items[i]; metav1.IsControlledBy(object, p.placement) {
			p.live[object.Name] = object
		}
	}
	return nil
}

// read converts the live objects to PlacementDecisions of Open Cluster Management.
func (p *publishing) read() []*clusterv1beta1.PlacementDecision {
	var result []*clusterv1beta1.PlacementDecision
	for _, name := range slices.Sorted(maps.Keys(p.live)) {
		object := p.live[name]
		same := &clusterv1beta1.PlacementDecision{ObjectMeta: object.ObjectMeta}
		if object.SchedulerName != Name {
			// Without owners the object differs from the wanted one, so [placement.Updates] writes the object and sets SchedulerName.
			same.OwnerReferences = nil
		}
		for _, decision := range object.Decisions {
			name := decision.ClusterProfileRef.Name
			if decision.ClusterProfileRef.Namespace != p.profiles {
				name = decision.ClusterProfileRef.Namespace + "/" + name
			}
			same.Status.Decisions = append(same.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name, Reason: decision.Reason})
		}
		result = append(result, same)
	}
	return result
}

func (p *publishing) take(ctx context.Context, step placement.Step) error {
	from := p.live[step.Object.Name]
	switch {
	case step.Delete:
		return p.delete(ctx, from)
	case from == nil:
		return p.create(ctx, step.Object)
	default:
		return p.update(ctx, from, step.Object)
	}
}

func (p *publishing) create(ctx context.Context, wanted *clusterv1beta1.PlacementDecision) error {
	object := &profilev1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: wanted.Namespace, Name: wanted.Name}}
	p.fill(object, wanted)
	err := p.client.Create(ctx, object)
	switch {
	case apierrors.IsAlreadyExists(err):
		return p.adopt(ctx, wanted)
	case err != nil:
		return fmt.Errorf("create PlacementDecision %s/%s of %s: %w", wanted.Namespace, wanted.Name, profilev1alpha1.Group, err)
	}
	p.live[object.Name] = object
	return nil
}

// adopt restores the label of an object that belongs to the Placement. It never returns nil, because the steps were computed
// without this object: see [writing.adopt].
func (p *publishing) adopt(ctx context.Context, wanted *clusterv1beta1.PlacementDecision) error {
	object := &profilev1alpha1.PlacementDecision{}
	if err := p.reader.Get(ctx, client.ObjectKeyFromObject(wanted), object); err != nil {
		return fmt.Errorf("get PlacementDecision %s/%s of %s: %w", wanted.Namespace, wanted.Name, profilev1alpha1.Group, err)
	}
	if !metav1.IsControlledBy(object, p.placement) {
		return &foreignError{object, p.placement, profilev1alpha1.Group}
	}
	if object.Labels[profilev1alpha1.DecisionKeyLabel] != p.placement.Name {
		object.Labels = merged(object.Labels, map[string]string{profilev1alpha1.DecisionKeyLabel: p.placement.Name})
		if err := p.client.Update(ctx, object); err != nil {
			return fmt.Errorf("update PlacementDecision %s/%s of %s: %w", wanted.Namespace, wanted.Name, profilev1alpha1.Group, err)
		}
	}
	return apierrors.NewConflict(profilev1alpha1.Resource("placementdecisions"), object.Name, errNotListed)
}

// update writes the whole object in one request. The request has the resource version of from.
func (p *publishing) update(ctx context.Context, from *profilev1alpha1.PlacementDecision, wanted *clusterv1beta1.PlacementDecision) error {
	object := from.DeepCopy()
	p.fill(object, wanted)
	if equality.Semantic.DeepEqual(object, from) {
		return nil
	}
	if err := p.client.Update(ctx, object); err != nil {
		return fmt.Errorf("update PlacementDecision %s/%s of %s: %w", wanted.Namespace, wanted.Name, profilev1alpha1.Group, err)
	}
	p.live[object.Name] = object
	return nil
}

func (p *publishing) fill(object *profilev1alpha1.PlacementDecision, wanted *clusterv1beta1.PlacementDecision) {
	object.Labels, object.Annotations = merged(object.Labels, wanted.Labels), merged(object.Annotations, wanted.Annotations)
	object.OwnerReferences, object.SchedulerName = wanted.OwnerReferences, Name
	object.Decisions = make([]profilev1alpha1.ClusterDecision, len(wanted.Status.Decisions))
	for i, decision := range wanted.Status.Decisions {
		object.Decisions[i] = profilev1alpha1.ClusterDecision{
			ClusterProfileRef: profilev1alpha1.ClusterProfileReference{Namespace: p.profiles, Name: decision.ClusterName}, Reason: decision.Reason,
		}
	}
}

// delete deletes an object unless its version has changed.
func (p *publishing) delete(ctx context.Context, object *profilev1alpha1.PlacementDecision) error {
	err := p.client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete PlacementDecision %s/%s of %s: %w", object.Namespace, object.Name, profilev1alpha1.Group, err)
	}
	delete(p.live, object.Name)
	return nil
}

// ofPublished returns the Placement whose name is in the label of a PlacementDecision of SIG Multicluster.
func ofPublished(_ context.Context, object client.Object) []reconcile.Request {
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[profilev1alpha1.DecisionKeyLabel]}
	if key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}
