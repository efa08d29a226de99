// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/internal/fleet"
	"github.com/celset/celset/placement"
)

// generatedHub has n clusters of about 5 KB, a score for each, and another
// Placement that chose every third one.
func generatedHub(n int) *hub {
	h := newHub()
	var chosen []string
	for i := range n {
		c := fleet.Cluster(i, now)
		h.clusters = append(h.clusters, c)
		h.score(c.Name, "r", map[string]int32{"s": int32(i*7%200 - 100)})
		if i%3 == 0 {
			chosen = append(chosen, c.Name)
		}
	}
	h.sets = []*clusterv1beta2.ManagedClusterSet{exclusiveSet(fleet.ClusterSet), labelSet("amazon", &metav1.LabelSelector{MatchLabels: map[string]string{"cloud": "Amazon"}})}
	for _, set := range h.sets {
		set.UID, set.ResourceVersion = "u", "1"
	}
	h.bindings = []*clusterv1beta2.ManagedClusterSetBinding{binding("ns", fleet.ClusterSet), binding("ns", "amazon")}
	h.decided("ns", "other", chosen...)
	return h
}

var benchmarked = []struct{ name, spec string }{
	{"all", ``},
	{"labels", `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {environment: prod}, matchExpressions: [{key: cloud, operator: In, values: [Amazon, Azure]}]}}}]`},
	{"cel", withExpressions(`managedCluster.status.version.kubernetes == "v1.30.0"`)},
	{"cel-regex", withExpressions(`managedCluster.status.clusterClaims.exists(c, c.value.matches('^1\\.(30|31)\\.\\d+$'))`)},
	{"cel-scores", withExpressions(`managedCluster.scores("r").exists(s, s.name == "s" && s.value > 0)`)},
	{"ten-by-score", "numberOfClusters: 10\n" + policy("Additive", "ResourceAllocatableCPU 1", "ResourceAllocatableMemory 1") + addOn("r", "s", 2)},
	{"spread", spreadOver("numberOfClusters: 100\n", `{topologyKey: region, topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`, `{topologyKey: cloud, topologyKeyType: Label}`)},
	{"groups", grouped(`clustersPerDecisionGroup: 10%, decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {cloud: Azure}}}}]`)},
}

// One operation is one Placement decided, by a Scheduler that remembers nothing of
// it: the expressions are compiled.
func BenchmarkScheduleFull(b *testing.B) {
	for _, benchmark := range benchmarked {
		for _, n := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", benchmark.name, n), func(b *testing.B) {
				h, s, object := generatedHub(n), newScheduler(b), placed(b, benchmark.spec)
				object.UID = ""
				b.ReportAllocs()
				for b.Loop() {
					result, err := s.Schedule(b.Context(), object, h.snapshot(), now)
					if err != nil || result.Decision == nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// One operation is one Placement decided after one cluster has changed.
func BenchmarkScheduleIncremental(b *testing.B) {
	for _, benchmark := range benchmarked {
		for _, n := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", benchmark.name, n), func(b *testing.B) {
				h, s, object := generatedHub(n), newScheduler(b), placed(b, benchmark.spec)
				result, err := s.Schedule(b.Context(), object, h.snapshot(), now)
				require.NoError(b, err)
				h.apply(object, result)
				versions := [2]*clusterv1.ManagedCluster{h.clusters[n/2], h.clusters[n/2].DeepCopy()}
				versions[1].ResourceVersion = "another"
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					i++
					h.clusters[n/2] = versions[i%2]
					result, err := s.Schedule(b.Context(), object, h.snapshot(), now)
					if err != nil || result.Decision == nil || result.Evaluated > 1 {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// One operation is what one changed PlacementDecision of a hundred clusters costs.
func BenchmarkDecisionsSet(b *testing.B) {
	decisions, names := placement.NewDecisions(), make([]string, 101)
	for i := range names {
		names[i] = fmt.Sprintf("cluster-%05d", i)
	}
	objects := [2]int{0, 1}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		from := objects[i%2]
		decisions.Set(decision("ns", "p", "p-decision-1", names[from:from+100]...))
	}
}

// One operation is the steps for n clusters that all move by one.
func BenchmarkUpdates(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			names := make([]string, n+1)
			for i := range names {
				names[i] = fmt.Sprintf("cluster-%05d", i)
			}
			former, wanted := sliced(100, names[1:]...), sliced(100, names...)
			b.ReportAllocs()
			for b.Loop() {
				if len(placement.Updates(former, wanted)) != n/100+1 {
					b.Fatal("not as few steps as possible")
				}
			}
		})
	}
}
