// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/placement"
)

// counting decides with one Scheduler and counts evaluations of CEL expressions.
type counting struct {
	t         *testing.T
	scheduler *placement.Scheduler
	hub       *hub
	object    *clusterv1beta1.Placement
}

// count is how many expressions are evaluated to decide at a time.
func (c *counting) count(at time.Time) int {
	c.t.Helper()
	before := evaluations.n
	result, err := c.scheduler.Schedule(c.t.Context(), c.object, c.hub.snapshot(), at)
	require.NoError(c.t, err)
	require.Equal(c.t, evaluations.n-before, result.Evaluated, "there is one expression")
	require.Equal(c.t, result.Evaluated > 0, result.Cost > 0)
	return result.Evaluated
}

// update puts a changed copy, with another version, in place of a cluster.
func (h *hub) update(i int, change func(*clusterv1.ManagedCluster)) {
	c := h.clusters[i].DeepCopy()
	version, err := strconv.Atoi(c.ResourceVersion)
	if err != nil {
		panic(err)
	}
	c.ResourceVersion = strconv.Itoa(version + 1)
	change(c)
	h.clusters = append(append(append([]*clusterv1.ManagedCluster{}, h.clusters[:i]...), c), h.clusters[i+1:]...)
}

func TestWhatIsEvaluatedAgain(t *testing.T) {
	const n = 100
	h := newHub()
	for i := range n {
		h.clusters = append(h.clusters, managed(fmt.Sprintf("c%02d", i)))
	}
	c := &counting{t, newScheduler(t), h, placed(t, withExpressions(`managedCluster.metadata.name < "c90" && managedCluster.scores("r").exists(s, s.value > 0)`))}
	for i := range n {
		h.score(h.clusters[i].Name, "r", map[string]int32{"s": 1})
	}
	require.Equal(t, n, c.count(now), "everything is new")
	require.Equal(t, 0, c.count(now.Add(time.Hour)), "nothing has changed")

	h.update(7, func(c *clusterv1.ManagedCluster) { c.Labels["a"] = "b" })
	require.Equal(t, 1, c.count(now), "a cluster")
	h.update(7, func(c *clusterv1.ManagedCluster) { c.UID, c.ResourceVersion = "another", h.clusters[7].ResourceVersion })
	require.Equal(t, 1, c.count(now), "a cluster with a name that was used")
	h.score("c08", "r", map[string]int32{"s": -1})
	require.Equal(t, 1, c.count(now), "a score that was read")
	h.score("c08", "q", map[string]int32{"s": -1})
	require.Equal(t, 0, c.count(now), "a score of another name")
	h.score("c95", "r", map[string]int32{"s": -1})
	require.Equal(t, 0, c.count(now), "a score that was not read, for the name decides before")
	delete(h.scores, "c08/r")
	require.Equal(t, 1, c.count(now), "a score that is gone")
	h.score("c08", "r", map[string]int32{"s": 1})
	require.Equal(t, 1, c.count(now), "a score that is there again")

	h.score("c09", "r", map[string]int32{"s": 1}).Status.ValidUntil = &metav1.Time{Time: now.Add(time.Minute)}
	require.Equal(t, 1, c.count(now), "a score that will expire")
	require.Equal(t, 0, c.count(now.Add(time.Minute)), "it has not yet")
	require.Equal(t, 1, c.count(now.Add(2*time.Minute)), "now it has")
	require.Equal(t, 1, c.count(now), "a clock that was put back")

	h.clusters = h.clusters[1:]
	require.Equal(t, 0, c.count(now), "a cluster that is gone")
	h.clusters = append([]*clusterv1.ManagedCluster{managed("c00")}, h.clusters...)
	require.Equal(t, 1, c.count(now), "it is there again")

	c.object.Annotations = map[string]string{placement.TieBreakAnnotation: placement.TieBreakRandom}
	h.decided("ns", "p", "c01")
	require.Equal(t, 0, c.count(now), "what predicates don't read")
	c.object.Generation++
	require.Equal(t, n, c.count(now), "the Placement")
	c.scheduler.Forget(c.object.UID)
	c.scheduler.Forget("never heard of")
	require.Equal(t, n, c.count(now), "what was forgotten")
	c.object.UID = "another"
	require.Equal(t, n, c.count(now), "a Placement with a name that was used")
}

func TestWhatIsNotRemembered(t *testing.T) {
	h := newHub(several("a", "b")...)
	h.score("a", "r", map[string]int32{"s": 1})
	h.score("b", "r", map[string]int32{"s": 1})
	c := &counting{t, newScheduler(t), h, placed(t, withExpressions(`managedCluster.scores("r").size() > 0`))}
	require.Equal(t, 2, c.count(now))
	h.clusters[0] = h.clusters[0].DeepCopy()
	h.clusters[0].ResourceVersion = ""
	require.Equal(t, 1, c.count(now), "a cluster without version")
	require.Equal(t, 1, c.count(now))
	h.scores["b/r"].ResourceVersion = ""
	require.Equal(t, 2, c.count(now), "a score without version")
	require.Equal(t, 2, c.count(now))
	h.clusters[0], h.scores["b/r"].ResourceVersion = managed("a"), "1"
	require.Equal(t, 2, c.count(now))
	require.Equal(t, 0, c.count(now))
	c.object.UID = ""
	require.Equal(t, 2, c.count(now), "a Placement without UID")
	require.Equal(t, 2, c.count(now))
	c.object.UID, c.object.Generation = "p", 0
	require.Equal(t, 2, c.count(now), "a Placement without generation")
	require.Equal(t, 2, c.count(now))
}

func TestFailuresAreRemembered(t *testing.T) {
	c := &counting{t, newScheduler(t), newHub(several("a", "b")...), placed(t, withExpressions(`managedCluster.nothing == 1`))}
	require.Equal(t, 2, c.count(now))
	require.Equal(t, 0, c.count(now))
}

// A Placement may be decided by several at once, though it makes no sense.
func TestConcurrentUse(t *testing.T) {
	s, h := newScheduler(t), newHub(several("a", "b", "c")...)
	var wait sync.WaitGroup
	for i := range 8 {
		object := placed(t, `predicates: [{requiredClusterSelector: {labelSelector: {}}}]`)
		object.UID, object.Name = types.UID(fmt.Sprint(i%3)), fmt.Sprint("p", i%3)
		object.Generation = int64(1 + i%2)
		wait.Go(func() {
			for j := range 20 {
				result, err := s.Schedule(t.Context(), object, h.snapshot(), now)
				if err != nil || result.Decision.Clusters != 3 {
					t.Error(err, result.Describe())
				}
				h.decisions.Set(result.Decision.Objects(object)[0])
				if j%10 == 9 {
					s.Forget(object.UID)
				}
			}
		})
	}
	wait.Wait()
}

func TestReads(t *testing.T) {
	h := newHub(several("a")...)
	computed := schedule(t, placed(t, withExpressions(`managedCluster.scores("x" + managedCluster.metadata.name).size() > 0`)), h).Reads
	require.True(t, computed.Computed)
	require.True(t, computed.Has("anything"))
	both := schedule(t, placed(t, withExpressions(`managedCluster.scores("x").size() > 0`)+exactly()+addOn("z", "s", 1)), h).Reads
	require.Equal(t, []string{"x", "z"}, sorted(both))
	require.Empty(t, sorted(schedule(t, placed(t, ``), h).Reads))
}

func sorted(names cluster.ScoreNames) []string {
	var result []string
	for _, name := range []string{"x", "y", "z"} {
		if names.Has(name) {
			result = append(result, name)
		}
	}
	return result
}
