// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

// heartbeat puts another version of a cluster in its place that differs in what nobody reads, or
// in one thing that somebody may.
func (h *history) heartbeat() {
	if len(h.hub.clusters) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.hub.clusters)-1).Draw(h.T, "beats")
	c := h.hub.clusters[i].DeepCopy()
	c.ResourceVersion = h.version()
	c.Annotations = map[string]string{"beat": c.ResourceVersion}
	switch rapid.IntRange(0, 11).Draw(h.T, "also") {
	case 0:
		c.Labels["n"] = fmt.Sprint(rapid.IntRange(1, 3).Draw(h.T, "n"))
	case 1:
		c.Spec.Taints = nil
	case 2:
		sized(c, "cpu", fmt.Sprint(rapid.IntRange(1, 3).Draw(h.T, "cpu")))
	case 3:
		c.ResourceVersion = ""
	case 4:
		c.DeletionTimestamp = &metav1.Time{Time: h.now}
	case 5:
		c.Labels["x"] = "y"
	}
	h.hub.clusters = append(append(append([]*clusterv1.ManagedCluster{}, h.hub.clusters[:i]...), c), h.hub.clusters[i+1:]...)
}

// interrupt decides with a context that ends while clusters are evaluated, which leaves some
// answers replaced and others not.
func (h *history) interrupt(s *placement.Scheduler, object *clusterv1beta1.Placement) {
	ctx, cancel := context.WithCancelCause(h.tb.Context())
	defer cancel(nil)
	left := rapid.IntRange(0, 3).Draw(h.T, "evaluations")
	evaluations.then = func() {
		if left--; left < 0 {
			cancel(&placement.Deadline{Limit: time.Second})
		}
	}
	defer func() { evaluations.then = nil }()
	if result, _ := s.Schedule(ctx, object, h.hub.snapshot(), h.now); result.Overrun != nil {
		if h.begun == nil {
			h.begun = map[types.UID]time.Time{}
		}
		h.begun[object.UID] = h.now
	}
}

// end has a decision made that was begun at another time: expressions have the time of then, so that it is not the one
// that would be made now.
func (h *history) end(s *placement.Scheduler, object *clusterv1beta1.Placement) {
	at, begun := h.begun[object.UID]
	delete(h.begun, object.UID)
	if begun && !at.Equal(h.now) {
		_, err := s.Schedule(h.tb.Context(), object, h.hub.snapshot(), h.now)
		require.NoError(h, err)
	}
}

// Where nothing has changed that ranks, groups and slices are made from, those of the last run are
// those from scratch, with the objects that there are now; and what was returned before stays as it was.
func TestResumedRunsAreThoseFromScratch(t *testing.T) {
	seen := map[string]int{}
	cases.Until(t, cases.Of(50, 1000), func() bool {
		return min(seen["resumed"], seen["resumed with another object"], seen["resumed with predicates"], seen["anew"]) > 0
	}, func(rt *rapid.T) {
		h, s := newHistory(t, rt), newScheduler(t)
		var before []*placement.Result
		var texts []string
		for range rapid.IntRange(5, 40).Draw(rt, "changes") {
			switch kind := rapid.IntRange(0, 9).Draw(rt, "kind"); {
			case kind < 7:
				h.heartbeat()
			case kind < 8:
				h.change()
			case kind < 9:
				h.interrupt(s, rapid.SampledFrom(h.objects).Draw(rt, "interrupted"))
			}
			object := rapid.SampledFrom(h.objects).Draw(rt, "object")
			h.end(s, object)
			got, err := s.Schedule(t.Context(), object, h.hub.snapshot(), h.now)
			require.NoError(rt, err)
			want, err := newScheduler(t).Schedule(t.Context(), object, h.hub.snapshot(), h.now)
			require.NoError(rt, err)
			require.Equal(rt, outcome(want), outcome(got))
			require.Equal(rt, want.Requeue, got.Requeue)
			require.Equal(rt, want.Conditions, got.Conditions)
			require.Equal(rt, want.TotalCost, got.TotalCost)
			require.Equal(rt, want.OutOfRange, got.OutOfRange)
			require.Len(rt, got.Candidates, len(want.Candidates))
			for i, c := range got.Candidates {
				require.Same(rt, want.Candidates[i].Cluster, c.Cluster)
				require.Equal(rt, want.Candidates[i].Avoided, c.Avoided)
			}
			count(seen, got, object, before)
			before, texts = append(before, got), append(texts, outcome(got))
			if rapid.IntRange(0, 3).Draw(rt, "apply") > 0 {
				h.hub.apply(object, got)
			}
		}
		for i, result := range before {
			require.Equal(rt, texts[i], outcome(result), "a result that was returned is not modified")
		}
	})
}

func count(seen map[string]int, got *placement.Result, object *clusterv1beta1.Placement, before []*placement.Result) {
	if !placement.Resumed(got) {
		seen["anew"]++
		return
	}
	seen["resumed"]++
	if len(object.Spec.Predicates) > 0 {
		seen["resumed with predicates"]++
	}
	for _, earlier := range before {
		if earlier.Decision == got.Decision && len(got.Candidates) > 0 && len(earlier.Candidates) > 0 && earlier.Candidates[0] != got.Candidates[0] {
			seen["resumed with another object"]++
			return
		}
	}
}

// resumes decides twice, with a change in between, and tells whether the second time resumed.
func resumes(t *testing.T, spec string, change func(h *hub, object *clusterv1beta1.Placement)) bool {
	t.Helper()
	h := newHub()
	for i := range 100 {
		h.clusters = append(h.clusters, sized(managed(fmt.Sprintf("c%02d", i), "n=1"), "cpu", "4"))
	}
	s, object := newScheduler(t), placed(t, spec)
	at := now
	for range 3 { // until the scores are written that follow from being selected
		at = at.Add(2 * time.Minute)
		result, err := s.Schedule(t.Context(), object, h.snapshot(), at)
		require.NoError(t, err)
		h.apply(object, result)
	}
	change(h, object)
	at = at.Add(time.Second)
	got, err := s.Schedule(t.Context(), object, h.snapshot(), at)
	require.NoError(t, err)
	want, err := newScheduler(t).Schedule(t.Context(), object, h.snapshot(), at)
	require.NoError(t, err)
	require.Equal(t, outcome(want), outcome(got))
	require.Equal(t, want.Conditions, got.Conditions)
	return placement.Resumed(got)
}

func TestWhatIsResumed(t *testing.T) {
	beat := func(change func(*clusterv1.ManagedCluster)) func(*hub, *clusterv1beta1.Placement) {
		return func(h *hub, _ *clusterv1beta1.Placement) { h.update(7, change) }
	}
	nothing := beat(func(*clusterv1.ManagedCluster) {})
	label := beat(func(c *clusterv1.ManagedCluster) { c.Labels["a"] = "b" })
	for name, test := range map[string]struct {
		spec   string
		change func(*hub, *clusterv1beta1.Placement)
		want   bool
	}{
		"nothing":              {``, func(*hub, *clusterv1beta1.Placement) {}, true},
		"a heartbeat":          {``, nothing, true},
		"a label":              {``, label, true},
		"a label of groups":    {grouped(`decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {"n": "1"}}}}]`), label, false},
		"a beat with groups":   {grouped(`decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {"n": "1"}}}}]`), nothing, true},
		"a label of topology":  {spreadOver("numberOfClusters: 3\n", `{topologyKey: "n", topologyKeyType: Label}`), label, false},
		"a predicate":          {withExpressions(`managedCluster.metadata.labels["n"] == "1"`), nothing, true},
		"the verdict":          {withExpressions(`managedCluster.metadata.labels["n"] == "1"`), beat(func(c *clusterv1.ManagedCluster) { c.Labels["n"] = "2" }), false},
		"the time":             {withExpressions(`now() > timestamp("2026-08-01T11:00:00Z")`), nothing, false},
		"a taint":              {``, beat(func(c *clusterv1.ManagedCluster) { tainting(c, "t", "NoSelect") }), false},
		"tolerated for a time": {`tolerations: [{key: t, operator: Exists, tolerationSeconds: 5}]`, nothing, false},
		"an amount":            {policy("Exact", "ResourceAllocatableCPU 1"), beat(func(c *clusterv1.ManagedCluster) { sized(c, "cpu", "5") }), false},
		"an amount not read":   {``, beat(func(c *clusterv1.ManagedCluster) { sized(c, "cpu", "5") }), true},
		"scores":               {exactly() + addOn("r", "s", 1), nothing, false},
		"another decided":      {``, func(h *hub, _ *clusterv1beta1.Placement) { h.decided("ns", "q", "c01") }, false},
		"not balanced":         {exactly("Steady 1"), func(h *hub, _ *clusterv1beta1.Placement) { h.decided("ns", "q", "c01") }, true},
		"the former decision":  {exactly("Steady 1"), func(h *hub, _ *clusterv1beta1.Placement) { h.decided("ns", "p", "c01") }, false},
		"the Placement":        {``, func(_ *hub, p *clusterv1beta1.Placement) { p.Generation++ }, false},
		"the order of equals": {``, func(_ *hub, p *clusterv1beta1.Placement) {
			p.Annotations = map[string]string{placement.TieBreakAnnotation: placement.TieBreakRandom}
		}, false},
		"a cluster less":    {``, func(h *hub, _ *clusterv1beta1.Placement) { h.clusters = h.clusters[1:] }, false},
		"one being deleted": {``, beat(func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = &metav1.Time{Time: now} }), false},
		"no version": {``, func(h *hub, _ *clusterv1beta1.Placement) {
			c := h.clusters[7].DeepCopy()
			c.ResourceVersion = ""
			h.clusters[7] = c
		}, false},
		"all beat": {``, func(h *hub, _ *clusterv1beta1.Placement) {
			for i := range h.clusters {
				h.update(i, func(*clusterv1.ManagedCluster) {})
			}
		}, false},
	} {
		require.Equal(t, test.want, resumes(t, test.spec, test.change), name)
	}
}

// What is kept of a run must not keep objects of clusters that are not there any more.
func TestFormerObjectsAreFreed(t *testing.T) {
	h := newHub()
	for i := range 100 {
		h.clusters = append(h.clusters, managed(fmt.Sprintf("c%02d", i)))
	}
	tainting(h.clusters[3], "t", "NoSelect")
	s, object := newScheduler(t), placed(t, exactly())
	decide := func() *placement.Result {
		result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
		require.NoError(t, err)
		return result
	}
	decide()
	freed := make(chan struct{}, 200)
	for i := range h.clusters {
		runtime.AddCleanup(h.clusters[i], func(int) { freed <- struct{}{} }, i)
		version, err := strconv.Atoi(h.clusters[i].ResourceVersion)
		require.NoError(t, err)
		c := h.clusters[i].DeepCopy()
		c.ResourceVersion = strconv.Itoa(version + 1)
		h.clusters[i] = c
		require.True(t, placement.Resumed(decide()))
	}
	for range 99 { // the last one may still be on a stack
		runtime.GC()
		select {
		case <-freed:
		case <-time.After(time.Minute):
			t.Fatal("the former object of a cluster is kept")
		}
	}
	require.Equal(t, 99, len(selected(t, decide())))
	runtime.KeepAlive(s)
}

// What is kept goes with the Placement.
func TestForgetSettled(t *testing.T) {
	placement.Decided.Forget()
	h, s, object := newHub(several(strings.Fields("a b c d")...)...), newScheduler(t), placed(t, ``)
	_, err := s.Schedule(t.Context(), object, h.snapshot(), now)
	require.NoError(t, err)
	require.Positive(t, placement.Decided.Used())
	s.Forget(object.UID)
	require.Zero(t, placement.Decided.Used())
	result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
	require.NoError(t, err)
	require.False(t, placement.Resumed(result))
}
