// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement_test

import (
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement"
)

// One operation is what a Placement costs when the region of one of 20,000 clusters changes, which it
// selects by or spreads over: until it is known what has to be written.
func BenchmarkMoved(b *testing.B) {
	const clusters = 20000
	for _, benchmark := range []struct{ name, spec string }{
		{"labels", "prioritizerPolicy: {mode: Exact}\n" + `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {region: eu-central-0, environment: prod}}}}]`},
		{"cel", "prioritizerPolicy: {mode: Exact}\n" + withExpressions(`managedCluster.metadata.labels["region"] == "eu-central-0"`)},
		{"spread", spreadOver("numberOfClusters: 60\n"+policy("Exact", "Steady 1")+addOn("r", "s", 1), `{topologyKey: region, topologyKeyType: Label, whenUnsatisfiable: DoNotSchedule}`)},
		{"ten-by-score", "numberOfClusters: 10\n" + policy("Exact", "ResourceAllocatableCPU 1") + addOn("r", "s", 2)},
	} {
		b.Run(benchmark.name, func(b *testing.B) {
			h, s, object := generatedHub(clusters), newScheduler(b), placed(b, benchmark.spec)
			object.ResourceVersion = "1"
			at := settled(b, s, h, object)
			versions := [2]*clusterv1.ManagedCluster{h.clusters[clusters/2], h.clusters[clusters/2].DeepCopy()}
			versions[1].ResourceVersion = "another"
			versions[0].Labels["region"], versions[1].Labels["region"] = "eu-central-0", "eu-central-1"
			key := object.Namespace + "/" + object.Name
			before := processorTime(b)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				h.clusters[clusters/2] = versions[i%2]
				if unmoved, _ := s.Unmoved(b.Context(), object, h.snapshot(), at); unmoved {
					continue
				}
				result, err := s.Schedule(b.Context(), object, h.snapshot(), at)
				if err != nil || result.Decision == nil {
					b.Fatal(err)
				}
				// What is written is what the next one starts from, as in a controller.
				if len(placement.Updates(h.written[key], result.Decision.Objects(object))) == 0 {
					s.Stands(object, result)
				} else {
					h.apply(object, result)
				}
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
