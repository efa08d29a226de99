// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

// frozen has a copy of the hub's scores. All snapshots use the same frozen until a score changes.
type frozen struct {
	of map[string]*clusterv1alpha1.AddOnPlacementScore
}

func (f *frozen) FindScore(namespace, name string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return f.of[namespace+"/"+name], nil
}

func (f *frozen) ScoreNames(namespace string) []string {
	var names []string
	for key := range f.of {
		if name, in := strings.CutPrefix(key, namespace+"/"); in {
			names = append(names, name)
		}
	}
	return names
}

// stays decides Placements of a random history, but only if Unchanged returns false.
type stays struct {
	*history
	scheduler *placement.Scheduler
	scores    *frozen
	seen      map[string]int
}

func (s *stays) snapshot() *placement.Snapshot {
	if s.scores == nil || !maps.Equal(s.scores.of, s.hub.scores) {
		s.scores = &frozen{maps.Clone(s.hub.scores)}
	}
	snapshot := s.hub.snapshot()
	snapshot.Scores = s.scores
	return snapshot
}

// look decides a Placement unless Unchanged returns true for it. In that case it requires that a decision would change nothing.
func (s *stays) look(object *clusterv1beta1.Placement, changed bool) {
	s.end(s.scheduler, object)
	snapshot := s.snapshot()
	unchanged, requeue := s.scheduler.Unchanged(s.tb.Context(), object, snapshot, s.now)
	want, err := newScheduler(s.tb).Schedule(s.tb.Context(), object, snapshot, s.now)
	require.NoError(s, err)
	if unchanged {
		s.requireStanding(object, want, requeue)
		s.count(object, changed)
		return
	}
	s.seen["decided"]++
	got, err := s.scheduler.Schedule(s.tb.Context(), object, snapshot, s.now)
	require.NoError(s, err)
	require.Equal(s, outcome(want), outcome(got))
	if rapid.IntRange(0, 5).Draw(s.T, "lost") == 0 {
		return // nothing was written
	}
	before := object.DeepCopy()
	steps := s.hub.apply(object, got)
	if got.Decision != nil && len(steps) == 0 && fmt.Sprint(before.Status) == fmt.Sprint(object.Status) {
		s.scheduler.Confirm(before, got)
	} else {
		object.ResourceVersion = s.version()
	}
}

// requireStanding requires that the hub already has the result want. Scores may differ if they don't influence the selection.
func (s *stays) requireStanding(object *clusterv1beta1.Placement, want *placement.Result, requeue time.Time) {
	require.NotNil(s, want.Decision)
	balances := slices.ContainsFunc(want.Prioritizers, func(p placement.Prioritizer) bool { return p.Name == placement.Balance })
	if object.Spec.NumberOfClusters != nil || len(object.Spec.SpreadPolicy.SpreadConstraints) > 0 || !balances || object.Spec.SortBy == clusterv1beta1.PlacementSortByScore {
		// requeue may be earlier, because a score that expires then may no longer be read.
		if !want.Requeue.IsZero() {
			require.False(s, requeue.IsZero() || requeue.After(want.Requeue), "%v is after %v", requeue, want.Requeue)
		}
		require.Equal(s, object.Status, want.ApplyTo(object.Status))
		require.Empty(s, s.hub.apply(object, want), "to decide writes something")
		return
	}
	status := want.ApplyTo(object.Status)
	status.LastScoreUpdateTime = object.Status.LastScoreUpdateTime
	require.Equal(s, object.Status, status)
	require.Equal(s, withoutScores(s.hub.written[object.Namespace+"/"+object.Name]), withoutScores(want.Decision.Objects(object)))
}

func withoutScores(objects []*clusterv1beta1.PlacementDecision) []*clusterv1beta1.PlacementDecision {
	result := make([]*clusterv1beta1.PlacementDecision, len(objects))
	for i, object := range objects {
		result[i] = object.DeepCopy()
		for j := range result[i].Status.Decisions {
			result[i].Status.Decisions[j].Score = 0
		}
	}
	return result
}

func (s *stays) count(object *clusterv1beta1.Placement, changed bool) {
	s.seen["unchanged"]++
	if !changed {
		return
	}
	s.seen["unchanged with another object"]++
	if len(object.Spec.Predicates) > 0 {
		s.seen["unchanged with predicates"]++
	}
	if len(object.Spec.PrioritizerPolicy.Configurations) > 0 {
		s.seen["unchanged with prioritizers"]++
	}
}

// TestUnchangedPlacementsWouldBeDecidedAsTheyStand checks random histories. If Unchanged returns true, a decision must change
// nothing.
func TestUnchangedPlacementsWouldBeDecidedAsTheyStand(t *testing.T) {
	seen := map[string]int{}
	kinds := []string{"unchanged", "unchanged with another object", "unchanged with predicates", "unchanged with prioritizers", "decided"}
	cases.Until(t, cases.Of(50, 1000), func() bool { return !slices.ContainsFunc(kinds, func(kind string) bool { return seen[kind] == 0 }) }, func(rt *rapid.T) {
		s := &stays{history: newHistory(t, rt), scheduler: newScheduler(t), seen: seen}
		for range rapid.IntRange(5, 50).Draw(rt, "changes") {
			changed := false
			switch kind := rapid.IntRange(0, 9).Draw(rt, "kind"); {
			case kind < 5:
				s.heartbeat()
				changed = true
			case kind < 6:
				s.change()
			case kind < 7:
				s.interrupt(s.scheduler, rapid.SampledFrom(s.objects).Draw(rt, "interrupted"))
			}
			for i, object := range s.objects {
				if object.ResourceVersion == "" {
					object.ResourceVersion = s.version()
				}
				if rapid.IntRange(0, 2).Draw(rt, fmt.Sprint("look at ", i)) > 0 {
					s.look(object, changed)
				}
			}
		}
	})
}

// TestMovesThatSelectTheSame moves clusters to other topologies. If Unchanged then returns true, a decision must change
// nothing.
func TestMovesThatSelectTheSame(t *testing.T) {
	seen := map[string]int{}
	enough := func() bool { return seen["unchanged with another object"] > 20 && seen["decided"] > 20 }
	cases.Until(t, cases.Of(300, 10_000), enough, func(rt *rapid.T) {
		s := &stays{history: &history{T: rt, tb: t, hub: newHub(), now: now}, scheduler: newScheduler(t), seen: seen}
		move := func(c *clusterv1.ManagedCluster) {
			c.ResourceVersion, c.Labels = s.version(), map[string]string{}
			for _, key := range []string{"region", "zone"} {
				if value := rapid.IntRange(0, 3).Draw(rt, key); value > 0 {
					c.Labels[key] = fmt.Sprint(value)
				}
			}
			if rapid.Bool().Draw(rt, "amount") {
				sized(c, "cpu", fmt.Sprint(rapid.IntRange(1, 3).Draw(rt, "cpu")))
			}
		}
		for i := range rapid.IntRange(3, 12).Draw(rt, "clusters") {
			c := managed(fmt.Sprintf("c%02d", i))
			move(c)
			s.hub.clusters = append(s.hub.clusters, c)
		}
		var constraints []string
		for _, key := range []string{"region", "zone"}[:rapid.IntRange(1, 2).Draw(rt, "constraints")] {
			constraints = append(constraints, fmt.Sprintf("{topologyKey: %s, topologyKeyType: Label, maxSkew: %d, whenUnsatisfiable: %s}", key,
				rapid.IntRange(1, 2).Draw(rt, "skew"), rapid.SampledFrom([]string{"DoNotSchedule", "ScheduleAnyway"}).Draw(rt, "when")))
		}
		spec := policy("Exact", "ResourceAllocatableCPU 1", "Steady 1")
		if wanted := rapid.IntRange(0, 8).Draw(rt, "wanted"); wanted > 0 {
			spec += fmt.Sprintf("\nnumberOfClusters: %d\n", wanted)
		}
		object := placed(t, spreadOver(spec, constraints...))
		object.ResourceVersion = s.version()
		for range rapid.IntRange(5, 30).Draw(rt, "changes") {
			changed := rapid.IntRange(0, 2).Draw(rt, "move") == 0
			if changed {
				i := rapid.IntRange(0, len(s.hub.clusters)-1).Draw(rt, "moves")
				s.hub.clusters = slices.Clone(s.hub.clusters)
				s.hub.clusters[i] = s.hub.clusters[i].DeepCopy()
				move(s.hub.clusters[i])
			}
			s.look(object, changed)
		}
	})
}

// TestValuesOfTopologiesDoNotGrow changes the label of a cluster a hundred times. The Scheduler must not remember all values:
// some of the changes must cause a decision, which drops them.
func TestValuesOfTopologiesDoNotGrow(t *testing.T) {
	h := newHub(managed("a", "n=1"), managed("b", "n=2"), managed("c", "n=3"))
	s, object := newScheduler(t), placed(t, spreadOver("numberOfClusters: 1\nprioritizerPolicy: {mode: Exact}\n", `{topologyKey: "n", topologyKeyType: Label}`))
	object.ResourceVersion = "1"
	standing(t, s, h, object)
	unchanged := 0
	for i := range 100 {
		h.clusters = slices.Clone(h.clusters)
		h.clusters[2] = managed("c", fmt.Sprint("n=v", i))
		h.clusters[2].ResourceVersion = fmt.Sprint(i + 2)
		if isUnchanged(s.Unchanged(t.Context(), object, h.snapshot(), now)) {
			unchanged++
			continue
		}
		standing(t, s, h, object)
	}
	require.Greater(t, unchanged, 80)
	require.Less(t, unchanged, 100)
}

// standing decides a Placement and writes the result until nothing is left to write, and then confirms the result.
func standing(t *testing.T, s *placement.Scheduler, h *hub, object *clusterv1beta1.Placement) {
	t.Helper()
	for range 3 {
		result := decide(t, s, object, h)
		require.NotNil(t, result.Decision, "%v", result.Conditions)
		if before := object.DeepCopy(); len(h.apply(object, result)) == 0 {
			s.Confirm(before, result)
			return
		}
	}
	require.Fail(t, "it does not come to an end")
}

// TestUnchangedPlacementsDoNotGrow checks that the memory does not grow while clusters change and their verdicts stay equal. It
// grows if the costs of the verdicts differ.
func TestUnchangedPlacementsDoNotGrow(t *testing.T) {
	h := newHub()
	for i := range 100 {
		h.clusters = append(h.clusters, managed(fmt.Sprintf("c%02d", i), "a=a"))
	}
	object, s := placed(t, withExpressions(`managedCluster.metadata.name < "c90" && managedCluster.metadata.labels.a.matches("[abx]+")`)), newScheduler(t)
	object.ResourceVersion = "1"
	standing(t, s, h, object)
	used, verdicts := placement.Used(s), placement.Verdicts(s, object.UID)
	require.Equal(t, 2, verdicts, "one of those that match, and one of the others")
	change := func(value func(i int) string) {
		for i := range h.clusters {
			h.update(i, func(c *clusterv1.ManagedCluster) { c.Labels["a"] = value(i) })
			unchanged, _ := s.Unchanged(t.Context(), object, h.snapshot(), now)
			require.True(t, unchanged)
		}
	}
	change(func(int) string { return "b" })
	require.Equal(t, verdicts, placement.Verdicts(s, object.UID))
	require.Equal(t, used, placement.Used(s))

	change(func(i int) string { return strings.Repeat("x", 10+i%50) })
	require.Greater(t, placement.Verdicts(s, object.UID), verdicts, "what the evaluation costs is another")
	require.Greater(t, placement.Used(s), used)
	s.Forget(object.UID)
}

func isUnchanged(unchanged bool, _ time.Time) bool { return unchanged }

// TestWhatIsNotKnownIsNotUnchanged checks that Unchanged returns false if the Placement was never decided or was forgotten, or
// if the snapshot has other scores.
func TestWhatIsNotKnownIsNotUnchanged(t *testing.T) {
	h, s := newHub(several("a", "b")...), newScheduler(t)
	object := placed(t, exactly()+addOn("r", "s", 1))
	object.ResourceVersion = "1"
	snapshot := h.snapshot()
	snapshot.Scores = nil
	decide := func() *placement.Result {
		result, err := s.Schedule(t.Context(), object, snapshot, now)
		require.NoError(t, err)
		return result
	}
	h.apply(object, decide())
	result := decide()
	s.Forget(object.UID)
	s.Confirm(object, result)
	require.False(t, isUnchanged(s.Unchanged(t.Context(), object, snapshot, now)), "it is forgotten")
	s.Confirm(object, decide())
	require.True(t, isUnchanged(s.Unchanged(t.Context(), object, snapshot, now)))
	require.False(t, isUnchanged(s.Unchanged(t.Context(), object, h.snapshot(), now)), "there are scores now")
}

// TestDecisionThatIsNotThereDoesNotStand confirms a decision whose PlacementDecisions are not on the hub. Unchanged must return
// false, because otherwise deleted objects would never be created again.
func TestDecisionThatIsNotThereDoesNotStand(t *testing.T) {
	h, s, object := newHub(several("a", "b")...), newScheduler(t), placed(t, exactly())
	object.ResourceVersion = "1"
	stands := func() bool { return isUnchanged(s.Unchanged(t.Context(), object, h.snapshot(), now)) }
	result := decide(t, s, object, h)
	s.Confirm(object, result)
	require.False(t, stands())
	for _, decision := range result.Decision.Objects(object) {
		h.decisions.Set(decision)
	}
	s.Confirm(object, decide(t, s, object, h))
	require.True(t, stands())
	for _, decision := range result.Decision.Objects(object) {
		h.decisions.Delete(decision.Namespace, decision.Name)
	}
	require.False(t, stands())
}

// TestManyCombinationsOfSets decides with more combinations of ManagedClusterSets than the Scheduler remembers.
func TestManyCombinationsOfSets(t *testing.T) {
	h, s := newHub(several("a", "b")...), newScheduler(t)
	for i := range 20 {
		name := fmt.Sprintf("set-%02d", i)
		h.sets = append(h.sets, labelSet(name, &metav1.LabelSelector{}))
		h.sets[len(h.sets)-1].ResourceVersion = "1"
		h.bindings = append(h.bindings, binding("ns", name))
	}
	unknown := placed(t, "")
	unknown.Generation = 0
	decide(t, s, unknown, h)
	require.False(t, placement.RemembersSets(s), "nothing is remembered of a Placement without a generation")
	for range 2 {
		for i := range 20 {
			object := placed(t, fmt.Sprintf("clusterSets: [set-%02d]", i))
			object.UID = types.UID(fmt.Sprint(i))
			result := decide(t, s, object, h)
			require.Equal(t, []string{"a", "b"}, selected(t, result))
		}
	}
	require.True(t, placement.RemembersSets(s))
}

// wherever has specs whose decisions depend on the topologies or decision groups of clusters.
var wherever = []string{
	spreadOver("numberOfClusters: %d\n"+policy("Exact", "Steady 1")+addOn("r", "s", 1), `{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`),
	spreadOver("numberOfClusters: %d\n"+policy("Exact", "ResourceAllocatableCPU 1"),
		`{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: ScheduleAnyway}`, `{topologyKey: "n", topologyKeyType: Claim, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}`),
	spreadOver("numberOfClusters: %d\n"+policy("Exact", "Steady 2"), `{topologyKey: "n", topologyKeyType: Claim, whenUnsatisfiable: ScheduleAnyway}`),
	spreadOver(exactly(), `{topologyKey: "n", topologyKeyType: Label, maxSkew: %d, whenUnsatisfiable: DoNotSchedule}`),
	spreadOver("numberOfClusters: %d\n", `{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`) + grouped(`clustersPerDecisionGroup: 2, decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {"n": "1"}}}}]`),
	"numberOfClusters: %d\n" + exactly() + grouped(`decisionGroups: [{groupName: one, groupClusterSelector: {claimSelector: {matchExpressions: [{key: "n", operator: In, values: ["1", "2"]}]}}}]`),
}

// relocate moves one or two clusters to other topologies.
func (h *history) relocate() {
	for range rapid.IntRange(1, 2).Draw(h.T, "how many move") {
		i := rapid.IntRange(0, len(h.hub.clusters)-1).Draw(h.T, "moves")
		c := h.hub.clusters[i].DeepCopy()
		c.ResourceVersion = h.version()
		where := fmt.Sprint(rapid.IntRange(1, 3).Draw(h.T, "where"))
		switch rapid.IntRange(0, 3).Draw(h.T, "by") {
		case 0:
			delete(c.Labels, "n")
		case 1:
			c.Labels["n"] = where
		case 2:
			c.Status.ClusterClaims = nil
		case 3:
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "n", Value: where}}
		}
		h.hub.clusters = slices.Clone(h.hub.clusters)
		h.hub.clusters[i] = c
	}
}

// TestPlacementsStandWhereverClustersAre moves clusters between topologies and decision groups. If Unchanged returns true, a
// decision must change nothing.
func TestPlacementsStandWhereverClustersAre(t *testing.T) {
	seen := map[string]int{}
	kinds := []string{"decided", "unchanged with another object", "unchanged with prioritizers"}
	cases.Until(t, cases.Of(50, 1000), func() bool { return !slices.ContainsFunc(kinds, func(kind string) bool { return seen[kind] == 0 }) }, func(rt *rapid.T) {
		s := &stays{history: newHistory(t, rt), scheduler: newScheduler(t), seen: seen}
		for i := range s.objects {
			spec := rapid.SampledFrom(wherever).Draw(rt, "spec")
			object := placed(t, strings.ReplaceAll(spec, "%d", fmt.Sprint(rapid.IntRange(1, 4).Draw(rt, "number"))))
			object.Name, object.UID, object.ResourceVersion = s.objects[i].Name, s.objects[i].UID, s.version()
			s.objects[i] = object
		}
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			if rapid.IntRange(0, 4).Draw(rt, "with "+name) > 0 {
				s.removeCluster(name)
				s.hub.clusters = append(s.hub.clusters, sized(managed(name), "cpu", "1"))
				s.hub.clusters[len(s.hub.clusters)-1].ResourceVersion = s.version()
			}
		}
		for range rapid.IntRange(5, 40).Draw(rt, "changes") {
			moves := false
			switch kind := rapid.IntRange(0, 19).Draw(rt, "kind"); {
			case kind == 0:
				s.replaceScore()
			case kind == 1:
				s.replaceCluster()
			case kind == 2:
				s.heartbeat()
			case len(s.hub.clusters) > 0:
				s.relocate()
				moves = true
			}
			for i, object := range s.objects {
				if rapid.IntRange(0, 3).Draw(rt, fmt.Sprint("look at ", i)) > 0 {
					s.look(object, moves)
				}
			}
		}
	})
	t.Log(seen)
}
