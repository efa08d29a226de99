// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

// specs has the specs of Placements in random histories. %d is replaced by a small number.
var specs = []string{
	``,
	`numberOfClusters: %d`,
	withExpressions(`managedCluster.metadata.labels["n"] == "1"`),
	withExpressions(`managedCluster.metadata.?labels["n"].orValue("2") != "%d"`, `managedCluster.scores("r").exists(s, s.value > %d)`),
	withExpressions(`managedCluster.scores("r" + managedCluster.metadata.labels["n"]).size() > 0`) + "sortBy: Score\n",
	`predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {"n": "1"}}}}, {requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.scores("r").all(s, s.value == 3)']}}}]` + "\nnumberOfClusters: %d\n",
	`tolerations: [{key: t, operator: Exists, tolerationSeconds: %d0}, {key: u, operator: Exists, effect: NoSelect}]`,
	"numberOfClusters: %d\nscoreRateLimit: 7s\n" + policy("Additive", "ResourceAllocatableCPU 2") + addOn("r", "s", -1),
	spreadOver("numberOfClusters: %d\n", `{topologyKey: "n", topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`),
	grouped(`clustersPerDecisionGroup: %d, decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {"n": "1"}}}}]`),
	withExpressions(`now() < timestamp("2026-08-01T12:00:%d0Z") || managedCluster.metadata.labels["n"] == "1"`),
	withExpressions(`(now() - timestamp(managedCluster.metadata.name < "c" ? "2026-08-01T11:58:27Z" : "2026-08-01T11:59:%d0Z")).getMinutes() == %d`),
	withExpressions(`managedCluster.scores("r").exists(s, s.value > now().getMinutes()) || string(now()).endsWith("%d0Z")`),
	`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['now() > timestamp("2026-08-01T12:00:%d0Z")']}}}, {requiredClusterSelector: {celSelector: {celExpressions: ['now().getMinutes() % 2 == 0', 'has(managedCluster.metadata.labels.n)']}}}]` + "\nnumberOfClusters: %d\n",
	withExpressions(`managedCluster.metadata.?labels["n"].orValue("1") == "1" || now() < timestamp("2026-08-01T12:00:%d0Z")`),
	withExpressions(`managedCluster.metadata.?labels["n"].orValue("1") == "1" || managedCluster.scores("r").all(s, s.value > -200)`) + "numberOfClusters: 6\n",
	`numberOfClusters: -1`,
	withExpressions(`1 +`),
}

// history has a hub and Placements, and changes both at random.
type history struct {
	*rapid.T
	tb       *testing.T
	hub      *hub
	now      time.Time
	versions int
	objects  []*clusterv1beta1.Placement
	// begun maps a Placement to the time of its interrupted decision, if it has one.
	begun map[types.UID]time.Time
}

func (h *history) version() string {
	h.versions++
	return fmt.Sprint(h.versions)
}

func (h *history) cluster() string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(h.T, "cluster")
}

// replaceCluster adds a cluster. If the cluster exists, replaceCluster replaces it with a new version.
func (h *history) replaceCluster() {
	name := h.cluster()
	c := managed(name)
	c.ResourceVersion, c.UID = h.version(), types.UID(rapid.SampledFrom([]string{"u", "v"}).Draw(h.T, "uid"))
	if n := rapid.IntRange(0, 3).Draw(h.T, "n"); n > 0 {
		c.Labels["n"] = fmt.Sprint(n)
	}
	if rapid.IntRange(0, 2).Draw(h.T, "exclusive") == 0 {
		c.Labels[clusterv1beta2.ClusterSetLabel] = "second"
	}
	if rapid.IntRange(0, 2).Draw(h.T, "tainted") == 0 {
		effect := rapid.SampledFrom([]clusterv1.TaintEffect{"NoSelect", "PreferNoSelect", "NoSelectIfNew"}).Draw(h.T, "effect")
		c.Spec.Taints = []clusterv1.Taint{{
			Key: rapid.SampledFrom([]string{"t", "u"}).Draw(h.T, "taint"), Effect: effect, TimeAdded: metav1.NewTime(h.now),
		}}
	}
	sized(c, "cpu", fmt.Sprint(rapid.IntRange(1, 3).Draw(h.T, "cpu")))
	h.removeCluster(name)
	h.hub.clusters = append(h.hub.clusters, c)
}

func (h *history) removeCluster(name string) {
	var others []*clusterv1.ManagedCluster
	for _, c := range h.hub.clusters {
		if c.Name != name {
			others = append(others, c)
		}
	}
	h.hub.clusters = others
}

func (h *history) replaceScore() {
	name := rapid.SampledFrom([]string{"r", "r1", "r2"}).Draw(h.T, "score")
	object := h.hub.score(h.cluster(), name, map[string]int32{"s": rapid.Int32Range(-120, 120).Draw(h.T, "value")})
	object.ResourceVersion = h.version()
	if after := rapid.IntRange(-1, 20).Draw(h.T, "validUntil"); after >= 0 {
		object.Status.ValidUntil = &metav1.Time{Time: h.now.Add(time.Duration(after) * time.Second)}
	}
}

func (h *history) replacePlacement(i int) {
	spec := rapid.SampledFrom(specs).Draw(h.T, "spec")
	if strings.Contains(spec, "%d") {
		spec = strings.ReplaceAll(spec, "%d", fmt.Sprint(rapid.IntRange(0, 5).Draw(h.T, "number")))
	}
	object := placed(h.tb, spec)
	object.Name, object.UID = fmt.Sprintf("p%d", i), types.UID(fmt.Sprintf("p%d", i))
	if before := h.objects[i]; before != nil {
		object.Generation, object.Status = before.Generation+1, before.Status
	}
	h.objects[i] = object
}

// change makes one random change.
func (h *history) change() {
	switch rapid.IntRange(0, 12).Draw(h.T, "change") {
	case 0, 1, 2, 3:
		h.replaceCluster()
	case 4:
		h.removeCluster(h.cluster())
	case 5, 6:
		h.replaceScore()
	case 7:
		delete(h.hub.scores, h.cluster()+"/r")
	case 8:
		h.now = h.now.Add(time.Duration(rapid.IntRange(1, 15).Draw(h.T, "seconds")) * time.Second)
	case 9:
		h.replacePlacement(rapid.IntRange(0, len(h.objects)-1).Draw(h.T, "placement"))
	case 10:
		h.replaceSet()
	case 11:
		h.bind()
	case 12:
		// Another client deletes all PlacementDecisions of a Placement.
		h.hub.write(fmt.Sprintf("ns/p%d", rapid.IntRange(0, len(h.objects)-1).Draw(h.T, "undecided")), nil)
	}
}

// replaceSet replaces the second ManagedClusterSet. The new set selects clusters by a label, selects clusters that name the
// set, or is empty.
func (h *history) replaceSet() {
	set := labelSet("second", &metav1.LabelSelector{MatchLabels: map[string]string{"n": fmt.Sprint(rapid.IntRange(1, 4).Draw(h.T, "of the set"))}})
	if rapid.IntRange(0, 2).Draw(h.T, "exclusive") == 0 {
		set = exclusiveSet("second")
	}
	set.ResourceVersion = rapid.SampledFrom([]string{h.version(), ""}).Draw(h.T, "version of the set")
	h.hub.sets = append(slices.Clone(h.hub.sets[:1]), set)
}

// bind replaces all ManagedClusterSetBindings with random ones, possibly with none.
func (h *history) bind() {
	h.hub.bindings = nil
	for _, name := range []string{"global", "second"} {
		if rapid.Bool().Draw(h.T, name) {
			bound := binding("ns", name)
			bound.ResourceVersion = h.version()
			h.hub.bindings = append(h.hub.bindings, bound)
		}
	}
}

// outcome returns the parts of a result that must not depend on the Scheduler's memory, as text. It leaves out costs and times.
func outcome(result *placement.Result) string {
	var names []string
	if result.Available != nil {
		for _, c := range result.Available.Clusters {
			names = append(names, c.Name)
		}
	}
	text := described(result, names...) + fmt.Sprint(result.Warnings, result.Reads)
	if result.Decision != nil {
		text += fmt.Sprintf("\n%+v", *result.Decision)
	}
	return text
}

func newHistory(t *testing.T, rt *rapid.T) *history {
	h := &history{T: rt, tb: t, hub: newHub(), now: now, objects: make([]*clusterv1beta1.Placement, 3)}
	for range 4 {
		h.replaceCluster()
		h.replaceScore()
	}
	for i := range h.objects {
		h.replacePlacement(i)
	}
	return h
}

// TestIncrementalResultsAreThoseFromScratch checks that a Scheduler with memory returns the same results as a new Scheduler. If
// nothing changes, the result must stay the same until Requeue.
func TestIncrementalResultsAreThoseFromScratch(t *testing.T) {
	cases.Check(t, func(rt *rapid.T) {
		h, s := newHistory(t, rt), newScheduler(t)
		for range rapid.IntRange(1, 25).Draw(rt, "changes") {
			h.change()
			object := rapid.SampledFrom(h.objects).Draw(rt, "object")
			got, err := s.Schedule(t.Context(), object, h.hub.snapshot(), h.now)
			require.NoError(rt, err)
			want, err := newScheduler(t).Schedule(t.Context(), object, h.hub.snapshot(), h.now)
			require.NoError(rt, err)
			require.Equal(rt, outcome(want), outcome(got))
			require.Equal(rt, want.Requeue, got.Requeue)
			h.requireNothingBefore(got, object)
			if rapid.Bool().Draw(rt, "apply") {
				h.hub.apply(object, got)
			}
		}
	})
}

func (h *history) requireNothingBefore(now *placement.Result, object *clusterv1beta1.Placement) {
	at := h.now.Add(1000 * time.Hour)
	if !now.Requeue.IsZero() {
		require.True(h.T, now.Requeue.After(h.now))
		at = now.Requeue.Add(-time.Nanosecond)
	}
	later, err := newScheduler(h.tb).Schedule(h.tb.Context(), object, h.hub.snapshot(), at)
	require.NoError(h.T, err)
	require.Equal(h.T, outcome(now), outcome(later))
}

// TestInvariants checks invariants of results in random histories.
func TestInvariants(t *testing.T) {
	cases.Check(t, func(rt *rapid.T) {
		h, s := newHistory(t, rt), newScheduler(t)
		for range rapid.IntRange(1, 10).Draw(rt, "changes") {
			h.change()
			object := h.objects[0]
			result, err := s.Schedule(t.Context(), object, h.hub.snapshot(), h.now)
			require.NoError(rt, err)
			require.Len(rt, result.Conditions, 3)
			if len(result.Misconfigurations) > 0 {
				require.True(rt, result.Decision == nil || len(result.Available.Clusters) == 0)
				require.Equal(rt, len(result.Misconfigurations), len(uninterrupted(s.Validate(rt.Context(), object))))
			}
			if result.Decision == nil {
				continue
			}
			requireEveryClusterAccountedFor(rt, result)
			h.hub.apply(object, result)
		}
	})
}

func requireEveryClusterAccountedFor(t *rapid.T, result *placement.Result) {
	seen := map[string]int{}
	for _, filtered := range result.Filters {
		for _, removal := range filtered.Removed {
			require.NotEmpty(t, removal.Reason.String())
			seen[removal.Cluster]++
		}
	}
	chosen := map[string]bool{}
	for _, c := range result.Candidates {
		require.Equal(t, c.Selected, c.Reason == nil)
		require.Len(t, c.Scores, len(result.Prioritizers))
		seen[c.Cluster.Name]++
		if c.Selected {
			chosen[c.Cluster.Name] = true
		}
	}
	require.Len(t, seen, len(result.Available.Clusters))
	for name, n := range seen {
		require.Equal(t, 1, n, name)
	}
	decided := 0
	for _, group := range result.Decision.Groups {
		require.NotEmpty(t, group.Slices)
		for _, slice := range group.Slices {
			require.LessOrEqual(t, len(slice.Decisions), placement.MaxSliceLength)
			for _, d := range slice.Decisions {
				require.True(t, chosen[d.ClusterName])
				decided++
			}
		}
	}
	require.Len(t, chosen, decided)
	require.Equal(t, decided, result.Decision.Clusters)
}

// TestTopologiesAreThoseOfTheClusters decides Placements that are spread over various topologies, while clusters join, leave
// and change topologies. Each decision must equal the decision of a new Scheduler.
func TestTopologiesAreThoseOfTheClusters(t *testing.T) {
	h, s := newHub(), newScheduler(t)
	for i := range 12 {
		h.clusters = append(h.clusters, claiming(managed(fmt.Sprintf("c%02d", i), fmt.Sprintf("n=%d", i%3), "all=1"), fmt.Sprintf("n=%d", i%4)))
	}
	decide := func(about string) {
		t.Helper()
		// Two Placements spread over labels n, and ten over keys that no cluster has. The same again with claims.
		for i := range 12 {
			for _, kind := range []string{"Label", "Claim"} {
				key := "n"
				if i > 1 {
					key = fmt.Sprint("n", i)
				}
				object := placed(t, spreadOver("numberOfClusters: 7\n", fmt.Sprintf(`{topologyKey: %q, topologyKeyType: %s, whenUnsatisfiable: ScheduleAnyway}`, key, kind)))
				object.UID = types.UID(fmt.Sprint(kind, i))
				got := decide(t, s, object, h)
				require.Equal(t, outcome(schedule(t, object, h)), outcome(got), "%s: %s %s", about, kind, key)
			}
		}
	}
	decide("at first")
	decide("again")
	h.update(3, func(c *clusterv1.ManagedCluster) { c.Labels["n"] = "7" })
	decide("a label")
	h.update(4, func(c *clusterv1.ManagedCluster) { delete(c.Labels, "n"); c.Status.ClusterClaims = nil })
	decide("in none")
	h.update(5, func(c *clusterv1.ManagedCluster) { c.ResourceVersion = "" })
	decide("no version")
	h.clusters[5].Labels["n"] = "9"
	decide("changed in place, without a version")
	h.clusters = h.clusters[2:]
	decide("two are gone")
	h.clusters = append(h.clusters, managed("z", "n=1"))
	decide("one is new")
}
