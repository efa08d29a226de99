// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"context"
	"fmt"
	"runtime"
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

// heartbeat replaces a cluster with a new version. Mostly no field that a Placement reads has changed, otherwise one field has.
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

// interrupt starts a decision whose context ends during the evaluations. Afterwards only some verdicts are up to date.
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

// end completes an interrupted decision of the Placement. Its expressions are evaluated with the time of its first attempt, so
// its result may differ from a new decision.
func (h *history) end(s *placement.Scheduler, object *clusterv1beta1.Placement) {
	at, begun := h.begun[object.UID]
	delete(h.begun, object.UID)
	if begun && !at.Equal(h.now) {
		_, err := s.Schedule(h.tb.Context(), object, h.hub.snapshot(), h.now)
		require.NoError(h, err)
	}
}

// TestResultsAfterInterruptionsAreThoseFromScratch interrupts decisions and changes clusters, mostly in fields that no
// Placement reads. Each result must equal the result of a new Scheduler. Results that were returned before must not change.
func TestResultsAfterInterruptionsAreThoseFromScratch(t *testing.T) {
	cases.Check(t, func(rt *rapid.T) {
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

// TestFormerObjectsAreFreed checks that the memory does not keep the former objects of clusters that were replaced.
func TestFormerObjectsAreFreed(t *testing.T) {
	h := newHub(numbered(0, 100)...)
	tainting(h.clusters[3], "t", "NoSelect")
	s, object := newScheduler(t), placed(t, exactly()+withExpressions(`managedCluster.metadata.name != "c0009"`))
	object.ResourceVersion = "1"
	standing(t, s, h, object)
	freed := make(chan struct{}, 200)
	for i := range h.clusters {
		runtime.AddCleanup(h.clusters[i], func(int) { freed <- struct{}{} }, i)
		h.update(i, func(*clusterv1.ManagedCluster) {})
		require.True(t, isUnchanged(s.Unchanged(t.Context(), object, h.snapshot(), now)))
	}
	for range 99 { // the last object may still be on a stack
		runtime.GC()
		select {
		case <-freed:
		case <-time.After(time.Minute):
			t.Fatal("the former object of a cluster is kept")
		}
	}
	require.Len(t, selected(t, decide(t, s, object, h)), 98)
	runtime.KeepAlive(s)
}

// TestWhatIsRememberedIsBounded decides many Placements with different expressions. The estimated size of the memory must be
// about the size in use. The decisions must stay the same after the memory is emptied.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	const placements = 60
	h := newHub(numbered(0, 200)...)
	var objects []*clusterv1beta1.Placement
	var uids []types.UID
	for i := range placements {
		object := placed(t, withExpressions(fmt.Sprintf(`managedCluster.metadata.name < "c0150" && managedCluster.metadata.name != "%d"`, i)))
		object.UID = types.UID(fmt.Sprint("uid-", i))
		objects, uids = append(objects, object), append(uids, object.UID)
	}
	scheduler, at := newScheduler(t), time.Now()
	decideAll := func(evaluated int) {
		t.Helper()
		for _, object := range objects {
			result, err := scheduler.Schedule(t.Context(), object, h.snapshot(), at)
			require.NoError(t, err)
			require.Len(t, selected(t, result), 150)
			require.Equal(t, evaluated, result.Evaluated, "%v", result.Conditions)
		}
	}
	forgetAll := func() {
		for _, object := range objects {
			scheduler.Forget(object.UID)
		}
	}
	decideAll(200) // This compiles the expressions.
	forgetAll()
	used := func() int64 { return placement.Used(scheduler) }
	others, before := used(), heap()
	decideAll(200)
	taken, said := heap()-before, used()-others
	compiled := placement.Compiled(scheduler, uids...)
	t.Logf("%d bytes are said, of which %d are compiled expressions; %d are taken", said, compiled, taken)
	require.Less(t, taken, 2*(said-compiled))
	require.Greater(t, 2*taken, said-compiled)
	decideAll(0)

	placement.ForgetAll(scheduler)
	require.Zero(t, used())
	decideAll(200)
	decideAll(0)
	forgetAll()
	require.Zero(t, used(), "nothing is left of Placements that are gone")
	runtime.KeepAlive(h.clusters)
}

// TestWhatIsRememberedIsSmall checks that the memory takes one word for each cluster and Placement, plus lists of clusters that
// Placements share. Hubs have hundreds of Placements and tens of thousands of clusters. If they did not fit into the memory,
// all verdicts would be computed again at each change.
func TestWhatIsRememberedIsSmall(t *testing.T) {
	const clusters = 5000
	h := newHub(numbered(0, clusters)...)
	scheduler := newScheduler(t)
	object := placed(t, withExpressions(`managedCluster.metadata.name.endsWith("7")`))
	result, err := scheduler.Schedule(t.Context(), object, h.snapshot(), time.Now())
	require.NoError(t, err)
	require.Len(t, selected(t, result), clusters/10)
	defer scheduler.Forget(object.UID)
	const compiled, list = 20 << 10, 16 * clusters
	require.Less(t, placement.Used(scheduler), int64(clusters*8+compiled+list))
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// TestVerdictsAreSharedBesideFailures checks that clusters with equal verdicts share one verdict. Failures are not shared,
// because a failure names its cluster.
func TestVerdictsAreSharedBesideFailures(t *testing.T) {
	const clusters = 300
	h, s := newHub(numbered(0, clusters)...), newScheduler(t)
	for _, c := range h.clusters[clusters/2:] {
		c.Labels["n"] = "1"
	}
	object := placed(t, withExpressions(`managedCluster.metadata.labels["n"] == "1"`))
	require.Len(t, selected(t, decide(t, s, object, h)), clusters/2)
	require.Equal(t, clusters/2+1, placement.Verdicts(s, object.UID))
}
