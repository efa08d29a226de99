// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/placement"
)

const isGPU = `managedCluster.metadata.labels["gpu"] == "yes"`

func TestDecisionFollowsClusters(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", map[string]string{"gpu": "yes"})
	b := f.join(t, "b", map[string]string{"gpu": "no"})
	p := f.place(t, "gpus", isGPU)
	f.requireSelected(t, p, "a")
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionSatisfied, "True "+placement.ReasonScheduled)

	change(t, f, b, func(c *clusterv1.ManagedCluster) { c.Labels["gpu"] = "yes" })
	f.requireSelected(t, p, "a", "b")
	c := f.join(t, "c", map[string]string{"gpu": "yes"})
	f.requireSelected(t, p, "a", "b", "c")
	change(t, f, c, func(c *clusterv1.ManagedCluster) { c.Labels = map[string]string{"gpu": "yes"} })
	f.requireSelected(t, p, "a", "b")
	must(t, f.Delete(t.Context(), b))
	f.requireSelected(t, p, "a")
}

func TestDecisionObjects(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	p := f.place(t, "all")
	f.requireSelected(t, p, "a")
	decision := f.decisions(t, p)["all-decision-1"]
	require.Empty(t, cmp.Diff(map[string]string{
		clusterv1beta1.PlacementLabel: "all", clusterv1beta1.DecisionGroupIndexLabel: "0", clusterv1beta1.DecisionGroupNameLabel: "",
	}, decision.Labels))
	require.True(t, metav1.IsControlledBy(&decision, p))

	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "False "+placement.ReasonConfigured)
	live := &clusterv1beta1.Placement{}
	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(p), live))
	require.EqualValues(t, 1, live.Status.NumberOfSelectedClusters)
	require.Empty(t, cmp.Diff([]clusterv1beta1.DecisionGroupStatus{
		{Decisions: []string{"all-decision-1"}, ClustersCount: 1},
	}, live.Status.DecisionGroups))
	want := []string{"DecisionCreate/DecisionCreated", "ScoreUpdate/ScoreUpdated"}
	eventually(t, want, func() []string { return f.eventsOf(t, p) })
}

func TestMistakeKeepsDecision(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", map[string]string{"gpu": "yes"})
	p := f.place(t, "gpus", isGPU)
	f.requireSelected(t, p, "a")
	version := f.decisions(t, p)["gpus-decision-1"].ResourceVersion

	change(t, f, p, func(p *clusterv1beta1.Placement) { p.Spec.Predicates = predicates("managedCluster.metadata.") })
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "True "+placement.ReasonMisconfigured)
	live := &clusterv1beta1.Placement{}
	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(p), live))
	message := meta.FindStatusCondition(live.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured).Message
	require.Contains(t, message, "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]")
	require.EqualValues(t, 1, live.Status.NumberOfSelectedClusters)
	f.join(t, "b", map[string]string{"gpu": "yes"})
	require.Equal(t, version, f.decisions(t, p)["gpus-decision-1"].ResourceVersion, "nothing may be written")

	change(t, f, p, func(p *clusterv1beta1.Placement) { p.Spec.Predicates = predicates(isGPU) })
	f.requireSelected(t, p, "a", "b")
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "False "+placement.ReasonConfigured)
}

func TestMistakeFromTheBeginning(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	p := f.place(t, "wrong", "managedCluster.metadata.")
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "True "+placement.ReasonMisconfigured)
	require.Empty(t, f.decisions(t, p))
	change(t, f, p, func(p *clusterv1beta1.Placement) { p.Spec.Predicates = nil })
	f.requireSelected(t, p, "a")
}

func TestUnbindingEmptiesDecision(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	p := f.place(t, "all")
	f.requireSelected(t, p, "a")
	must(t, f.Delete(t.Context(), &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: f.name}}))
	f.requireSelected(t, p)
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNoBindings)
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

// TestStayingClusterIsNeverMissing watches all decisions while the clusters move
// between them.
func TestStayingClusterIsNeverMissing(t *testing.T) {
	f := newFleet(t)
	stay := sets.New[string]()
	for i := range 150 {
		stay.Insert(f.join(t, fmt.Sprintf("m%03d", i), nil).Name)
	}
	p := f.place(t, "all")
	eventually(t, 150, func() int { return f.count(t, p) })
	watch, err := f.Watch(t.Context(), &clusterv1beta1.PlacementDecisionList{}, client.InNamespace(f.name),
		&client.ListOptions{Raw: &metav1.ListOptions{SendInitialEvents: ptr.To(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}})
	must(t, err)
	defer watch.Stop()
	for i := range 60 {
		f.join(t, fmt.Sprintf("a%03d", i), nil)
	}
	seen := map[string]*clusterv1beta1.PlacementDecision{}
	total := func() int {
		n := 0
		for _, decision := range seen {
			n += len(decision.Status.Decisions)
		}
		return n
	}
	for complete, timeout := false, time.After(patience); total() != 210; {
		select {
		case <-timeout:
			t.Fatalf("%d of 210 clusters after %s", total(), patience)
		case e := <-watch.ResultChan():
			decision, ok := e.Object.(*clusterv1beta1.PlacementDecision)
			require.True(t, ok, "%s: %v", e.Type, e.Object)
			if seen[decision.Name] = decision; e.Type == "DELETED" {
				delete(seen, decision.Name)
			}
			missing := stay.Clone()
			for _, decision := range seen {
				for _, d := range decision.Status.Decisions {
					missing.Delete(d.ClusterName)
				}
			}
			complete = complete || missing.Len() == 0
			require.False(t, complete && missing.Len() > 0, "missing: %v", sets.List(missing))
		}
	}
}

func TestTolerationEnds(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	b := f.join(t, "b", nil)
	p := f.place(t, "tolerant")
	change(t, f, p, func(p *clusterv1beta1.Placement) {
		p.Spec.Tolerations = []clusterv1beta1.Toleration{{Key: "leaving", Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: ptr.To[int64](4)}}
	})
	f.requireSelected(t, p, "a", "b")
	added := metav1.Now()
	change(t, f, b, func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = []clusterv1.Taint{{Key: "leaving", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: added}}
	})
	f.requireSelected(t, p, "a")
	require.GreaterOrEqual(t, time.Since(added.Time), 3*time.Second, "it is tolerated until then; the API keeps whole seconds")
}

func TestScoreChangesAndExpires(t *testing.T) {
	f := newFleet(t)
	a := f.join(t, "a", nil)
	f.join(t, "b", nil)
	f.create(t, namespaceOf(a))
	p := f.place(t, "scored", `managedCluster.metadata.name.endsWith("-b") || managedCluster.scores("room").exists(s, s.name == "free" && s.value > 10)`)
	f.requireSelected(t, p, "b")
	f.requireCondition(t, p, placement.ConditionEvaluationFailed, "True "+placement.ReasonEvaluationFailed)

	score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: a.Name, Name: "room"}}
	f.create(t, score)
	score.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "free", Value: 50}}
	must(t, f.Status().Update(t.Context(), score))
	f.requireSelected(t, p, "a", "b")
	f.requireCondition(t, p, placement.ConditionEvaluationFailed, "False "+placement.ReasonEvaluationsSucceeded)
	score.Status.ValidUntil = ptr.To(metav1.NewTime(time.Now().Add(2 * time.Second)))
	must(t, f.Status().Update(t.Context(), score))
	f.requireSelected(t, p, "b")
	require.False(t, time.Now().Before(score.Status.ValidUntil.Time))
}

func TestOthersAreLeftAlone(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	mine, other := f.place(t, "mine"), f.place(t, "other")
	f.requireSelected(t, other, "a")
	change(t, f, other, func(p *clusterv1beta1.Placement) { p.Annotations = nil })
	f.join(t, "b", nil)
	f.requireSelected(t, mine, "a", "b")
	f.requireSelected(t, other, "a")

	change(t, f, other, func(p *clusterv1beta1.Placement) { p.Annotations = map[string]string{placement.TakeAnnotation: "true"} })
	f.requireSelected(t, other, "a", "b")
}

func TestDecisionIsRestored(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	p := f.place(t, "all")
	f.requireSelected(t, p, "a")
	decision := f.decisions(t, p)["all-decision-1"]
	t.Run("deleted", func(t *testing.T) {
		must(t, f.Delete(t.Context(), decision.DeepCopy()))
		f.requireSelected(t, p, "a")
	})
	t.Run("label removed", func(t *testing.T) {
		decision := f.decisions(t, p)["all-decision-1"]
		change(t, f, &decision, func(d *clusterv1beta1.PlacementDecision) { delete(d.Labels, clusterv1beta1.PlacementLabel) })
		f.requireSelected(t, p, "a")
	})
}

func TestForeignDecisionIsKept(t *testing.T) {
	f := newFleet(t)
	f.join(t, "a", nil)
	foreign := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: f.name, Name: "all-decision-1"}}
	f.create(t, foreign)
	p := f.place(t, "all")
	eventually(t, []string{"DecisionFailure/DecisionFailed"}, func() []string { return f.eventsOf(t, p) })
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "True "+placement.ReasonMisconfigured)
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionSatisfied, "False "+placement.ReasonNotScheduled)
	live := &clusterv1beta1.Placement{}
	must(t, f.Get(t.Context(), client.ObjectKeyFromObject(p), live))
	condition := meta.FindStatusCondition(live.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured)
	require.Contains(t, condition.Message, "Selection:metadata.name: PlacementDecision "+f.name+"/all-decision-1 is not of Placement all")
	must(t, f.Delete(t.Context(), foreign))
	f.requireSelected(t, p, "a")
	f.requireCondition(t, p, clusterv1beta1.PlacementConditionMisconfigured, "False "+placement.ReasonConfigured)
}

// eventsOf are reason and action of the events about a Placement, each once, sorted.
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

func (f fleet) count(t *testing.T, object *clusterv1beta1.Placement) int {
	t.Helper()
	n := 0
	for _, names := range f.selected(t, object) {
		n += len(names)
	}
	return n
}
