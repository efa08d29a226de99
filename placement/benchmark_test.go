// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/internal/testing/fleet"
	"github.com/celset/celset/placement"
)

// generatedHub returns a hub with n clusters of about 5 KB and a score for each. Another Placement has selected every third
// cluster.
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

// machines is the name of a claim whose value lists, as JSON, the machines that a cluster can have.
const machines = "sku.gpu.kubernetes-fleet.io"

// machinesOf returns the value of that claim for cluster i. There are only twelve different values, because a fleet has few
// regions with different machine sizes.
func machinesOf(i int) string {
	return fmt.Sprintf(`{"H100":[{"Standard_NC96ads_H100_v4":%d},{"Standard_NC48ads_H100_v4":%d}],"A100":[{"Standard_NC96ads_A100_v4":1}]}`, i%3, i%4)
}

// rowsHub returns a generated hub. Each cluster also has a claim with JSON, and ten more scores.
func rowsHub(n int) *hub {
	h := generatedHub(n)
	for i, c := range h.clusters {
		c.Status.ClusterClaims[4] = clusterv1.ManagedClusterClaim{Name: machines, Value: machinesOf(i)}
		ten := map[string]int32{}
		for j := range 10 {
			ten[fmt.Sprintf("s%d", j)] = int32((i*7 + j) % 100)
		}
		h.score(c.Name, "ten", ten)
	}
	return h
}

// rows has the rows of the table in docs/performance.md.
var rows = []struct {
	name, spec string
	// changes changes the hub before each decision, and the benchmark first asks whether the last result is still valid, as the
	// controller does. If changes is nil, the Scheduler's memory is emptied before each decision.
	changes func(h *hub, i int)
}{
	{"version", withExpressions(`managedCluster.status.version.kubernetes == "v1.30.0"`), nil},
	{"label-regex", withExpressions(`managedCluster.metadata.labels["version"].matches('^1\\.(30|31)\\.\\d+$')`), nil},
	{"exists-regex", withExpressions(`managedCluster.status.clusterClaims.exists(c, c.value.matches('^1\\.(30|31)\\.\\d+$'))`), nil},
	{"scores", withExpressions(`managedCluster.scores("r").exists(s, s.name == "s" && s.value > 0)`), nil},
	{"scores-ten", withExpressions(`managedCluster.scores("ten").exists(s, s.name == "s9" && s.value > 50)`), nil},
	{"parse-json", withExpressions(`managedCluster.status.clusterClaims.exists(c, c.name == "` + machines + `" && c.value.parseJSON().H100.exists(e, e.?Standard_NC96ads_H100_v4.orValue(0) == 2))`), nil},
	{"labels", `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {environment: prod}, matchExpressions: [{key: cloud, operator: In, values: [Amazon, Azure]}]}}}]`, nil},
	{"no-predicate", ``, nil},
	{"no-predicate-again", ``, func(*hub, int) {}},
	// This change affects only the version of an object, as most changes do.
	{"one-changed", ``, func(h *hub, _ int) { h.replace(len(h.clusters)/2, func(*clusterv1.ManagedCluster) {}) }},
	// The cluster alternately gets and loses a taint, so it leaves and returns.
	{"one-leaves", ``, func(h *hub, i int) {
		h.replace(len(h.clusters)/2, func(c *clusterv1.ManagedCluster) {
			if c.Spec.Taints = nil; i%2 == 0 {
				c.Spec.Taints = []clusterv1.Taint{{Key: "away", Effect: clusterv1.TaintEffectNoSelect}}
			}
		})
	}},
}

// replace replaces a cluster with a new version, as an informer does.
func (h *hub) replace(i int, change func(*clusterv1.ManagedCluster)) {
	c := *h.clusters[i]
	c.ResourceVersion += "0"
	if len(c.ResourceVersion) > 12 {
		c.ResourceVersion = strings.TrimRight(c.ResourceVersion, "0") + "1"
	}
	change(&c)
	h.clusters = slices.Clone(h.clusters)
	h.clusters[i] = &c
}

// BenchmarkRows decides one Placement on 1,000 and on 10,000 clusters of 5 KB. It reports cpu-ns/cluster: the processor time of
// the whole process, with garbage collection, for each cluster. Other programs on the machine don't count.
func BenchmarkRows(b *testing.B) {
	for _, row := range rows {
		for _, n := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("%s/%d", row.name, n), func(b *testing.B) {
				h, s, object := rowsHub(n), newScheduler(b), placed(b, row.spec)
				object.ResourceVersion = "1"
				at := now
				if row.changes == nil {
					object.UID = ""
					decideRow(b, s, h, object, at)
				} else {
					at = settle(b, s, h, object)
				}
				b.ReportAllocs()
				i, before := 0, processorTime(b)
				for b.Loop() {
					if row.changes != nil {
						i++
						row.changes(h, i)
						if unchanged, _ := s.Unchanged(b.Context(), object, h.snapshot(), at); unchanged {
							continue
						}
					}
					decideRow(b, s, h, object, at)
				}
				b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/float64(n), "cpu-ns/cluster")
			})
		}
	}
}

func decideRow(b *testing.B, s *placement.Scheduler, h *hub, object *clusterv1beta1.Placement, at time.Time) *placement.Result {
	result, err := s.Schedule(b.Context(), object, h.snapshot(), at)
	if err != nil || result.Decision == nil || result.Decision.Clusters == 0 {
		b.Fatal(err, described(result))
	}
	return result
}

// settle decides a Placement and writes the result until nothing is left to write. It returns the time of the last decision.
func settle(b *testing.B, s *placement.Scheduler, h *hub, object *clusterv1beta1.Placement) time.Time {
	for at := now; ; at = at.Add(2 * time.Minute) {
		result := decideRow(b, s, h, object, at)
		if len(h.apply(object, result)) == 0 {
			s.Confirm(object, result)
			return at
		}
	}
}

// processorTime returns the processor time that the process has used.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
