// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
)

const isGPU = `managedCluster.metadata.labels["gpu"] == "yes"`

// TestDecisionFollows checks that a decision follows changes of clusters, bindings and annotations.
func TestDecisionFollows(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", map[string]string{"gpu": "yes"})
	b := f.join(t, "b", map[string]string{"gpu": "no"})
	p := f.place(t, "gpus", isGPU)
	f.requireSelected(t, p, "a")
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionSatisfied, "True "+wellknown.ReasonScheduled)
	eventually(t, []string{"DecisionCreate/DecisionCreated", "ScoreUpdate/ScoreUpdated"}, func() []string { return f.eventsOf(t, p) })
	decision := f.decisions(t, p)["gpus-decision-1"]
	require.True(t, metav1.IsControlledBy(&decision, p))

	change(t, f, b, func(c *clusterv1.ManagedCluster) { c.Labels["gpu"] = "yes" })
	f.requireSelected(t, p, "a", "b")
	c := f.join(t, "c", map[string]string{"gpu": "yes"})
	f.requireSelected(t, p, "a", "b", "c")
	change(t, f, c, func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"gpu": "yes"} })
	f.requireSelected(t, p, "a", "b")

	change(t, f, p, func(p *clusterv1beta1.Placement) { p.Annotations = nil })
	must(t, f.Delete(t.Context(), b))
	mine := f.place(t, "mine")
	f.requireSelected(t, mine, "a")
	f.requireSelected(t, p, "a", "b")
	change(t, f, p, func(p *clusterv1beta1.Placement) {
		p.Annotations = map[string]string{wellknown.AnnotationPlacement: "true"}
	})
	f.requireSelected(t, p, "a")
	must(t, f.Delete(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: f.name}}))
	f.requireSelected(t, p)
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionSatisfied, "False "+wellknown.ReasonNoBindings)
}

func TestMistakeFromTheBeginning(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	// Without clusters the controller would have written an empty decision. So this selection shows that it has seen the cluster.
	f.requireSelected(t, f.place(t, "right"), "a")
	p := f.place(t, "wrong", "managedCluster.metadata.")
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "True "+wellknown.ReasonMisconfigured)
	require.Empty(t, f.decisions(t, p))
	change(t, f, p, func(p *clusterv1beta1.Placement) { p.Spec.Predicates = nil })
	f.requireSelected(t, p, "a")
}

func TestMoreThanOneSliceAndCleanUp(t *testing.T) {
	f := newFleet(t)
	var want []string
	for i := range 130 {
		want = append(want, f.join(t, fmt.Sprintf("%03d", i), nil).Name)
	}
	p := f.place(t, "all")
	eventually(t, map[string][]string{"all-decision-1": want[:100], "all-decision-2": want[100:]},
		func() map[string][]string { return f.selected(t, p) })

	change(t, f, p, func(p *clusterv1beta1.Placement) { p.Spec.NumberOfClusters = ptr.To[int32](7) })
	eventually(t, map[string][]string{"all-decision-1": want[:7]}, func() map[string][]string { return f.selected(t, p) })
	eventually(t, true, func() bool { return slices.Contains(f.eventsOf(t, p), "DecisionDelete/DecisionDeleted") })
	must(t, f.Delete(t.Context(), p))
	eventually(t, map[string][]string{}, func() map[string][]string { return f.selected(t, p) })
}

func TestScoreChangesAndExpires(t *testing.T) {
	f := newFleet(t)
	a := f.join(t, "a", nil)
	f.join(t, "b", nil)
	f.create(t, namespaceOf(a))
	p := f.place(t, "scored", `managedCluster.metadata.name.endsWith("-b") || managedCluster.scores("room").exists(s, s.name == "free" && s.value > 10)`)
	f.requireSelected(t, p, "b")
	f.requireCondition(t, p, wellknown.ConditionEvaluationFailed, "True "+wellknown.ReasonEvaluationFailed)

	score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: a.Name, Name: "room"}}
	f.create(t, score)
	score.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "free", Value: 50}}
	must(t, f.Status().Update(t.Context(), score))
	f.requireSelected(t, p, "a", "b")
	f.requireCondition(t, p, wellknown.ConditionEvaluationFailed, "False "+wellknown.ReasonEvaluationsSucceeded)
	score.Status.ValidUntil = ptr.To(metav1.NewTime(time.Now().Add(2 * time.Second)))
	must(t, f.Status().Update(t.Context(), score))
	f.requireSelected(t, p, "b")
	require.False(t, time.Now().Before(score.Status.ValidUntil.Time))
}

func TestForeignDecisionIsKept(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	foreign := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "all-decision-1"}}
	f.create(t, foreign)
	p := f.place(t, "all")
	eventually(t, []string{"DecisionFailed/Deciding"}, func() []string { return f.eventsOf(t, p) })
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "True "+wellknown.ReasonMisconfigured)
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionSatisfied, "False "+wellknown.ReasonNotScheduled)
	live := &clusterv1beta1.Placement{}
	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(p), live))
	condition := meta.FindStatusCondition(live.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
	require.Contains(t, condition.Message, "Selection:metadata.name: PlacementDecision "+f.name+"/all-decision-1 does not belong to Placement all")
	must(t, f.Delete(t.Context(), foreign))
	f.requireSelected(t, p, "a")
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "False "+wellknown.ReasonConfigured)
}

// eventsOf returns the reasons and actions of a Placement's events, sorted and without duplicates.
func (f fleet) eventsOf(t *testing.T, object *clusterv1beta1.Placement) []string {
	t.Helper()
	var list eventsv1.EventList
	must(t, f.List(t.Context(), &list, client.InNamespace(object.Namespace)))
	var result []string
	for _, e := range list.Items {
		if e.Regarding.Name == object.Name && e.Regarding.Kind == "Placement" {
			result = append(result, e.Reason+"/"+e.Action)
		}
	}
	slices.Sort(result)
	return slices.Compact(result)
}

func candidatesOf(result *placement.Result) []string {
	names := []string{}
	for _, c := range result.Candidates {
		names = append(names, c.Cluster.Name)
	}
	return names
}

func TestPreview(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", map[string]string{"tier": "gold"})
	f.join(t, "b", nil)
	object := f.place(t, "p", `"tier" in managedCluster.metadata.labels`)
	f.requireSelected(t, object, "a")

	preview, err := controller.NewPreview(f.hub, controller.Options{})
	must(t, err)
	key := client.ObjectKeyFromObject(object)
	live, err := preview.Placement(t.Context(), key)
	must(t, err)
	f.requireCondition(t, live, clusterv1beta1.PlacementConditionSatisfied, "True AllDecisionsScheduled")
	result, err := preview.Schedule(t.Context(), live, time.Time{})
	must(t, err)
	require.Equal(t, f.names("a"), candidatesOf(result))
	require.EqualValues(t, 200, result.Candidates[0].Total, "it is in the former decision, so Steady says 100")
	for _, condition := range result.Conditions {
		require.Equal(t, live.Generation, condition.ObservedGeneration)
	}

	// A preview of another spec has the same UID and generation as the stored Placement. It must not change the controller's
	// caches.
	pretender := live.DeepCopy()
	pretender.Spec.Predicates = predicates(`false`)
	result, err = preview.Schedule(t.Context(), pretender, time.Time{})
	must(t, err)
	require.Empty(t, result.Candidates)
	result, err = preview.Schedule(t.Context(), live, time.Time{})
	must(t, err)
	require.Equal(t, f.names("a"), candidatesOf(result))

	// A preview can have another time than now.
	timed := live.DeepCopy()
	timed.Spec.Predicates = predicates(`now() < timestamp("2026-08-01T12:00:00Z")`)
	at := time.Date(2026, 8, 1, 11, 59, 59, 0, time.UTC)
	result, err = preview.Schedule(t.Context(), timed, at)
	must(t, err)
	require.Equal(t, f.names("a", "b"), candidatesOf(result))
	require.Equal(t, at.Add(time.Second), result.Requeue)

	f.requireSelected(t, object, "a")
	_, err = preview.Placement(t.Context(), types.NamespacedName{Namespace: f.name, Name: "q"})
	require.True(t, apierrors.IsNotFound(err), err)
}
