// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/internal/testing/fleet"
)

const (
	// fleetSize is how many clusters there are.
	fleetSize = 200
	// seed makes them the same ones each time.
	seed = 5254

	// bound is the ManagedClusterSet that namespace is bound to, unbound another one.
	bound, unbound = fleet.ClusterSet, "staging"

	regionLabel  = "region"
	cloudLabel   = "cloud"
	versionLabel = "version"
	// shopLabel marks the two clusters of the story of recovery.
	shopLabel = "shop"

	versionClaim = "kubeversion.open-cluster-management.io"
	nodesClaim   = "sku.node.k8s.io"
	gpusClaim    = "sku.gpu.kubernetes-fleet.io"

	// defaultScores is an AddOnPlacementScore with the following scores, recoveryScores
	// one with roleScore.
	defaultScores  = "default"
	cpuScore       = "cpuAvailable"
	memoryScore    = "memAvailable"
	ratioScore     = "cpuratio"
	recoveryScores = "disasterrecovery"
	roleScore      = "workload"
)

// regions, and how much more idle than elsewhere the clusters are there.
var regions = []struct {
	name string
	idle int
}{{"ap-south", 0}, {"eu-central", 10}, {"eu-west", 0}, {"us-east", 45}, {"us-west", 20}}

// member is a cluster with its AddOnPlacementScores.
type member struct {
	*clusterv1.ManagedCluster
	scores map[string]*clusterv1alpha1.AddOnPlacementScore
}

// newFleet generates the clusters. Each has a version, a region and scores of its
// own, and one of three clouds.
func newFleet(now time.Time) []member {
	result := make([]member, fleetSize)
	for i := range result {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		region := regions[random.IntN(len(regions))]
		result[i].ManagedCluster = newCluster(i, now, random, region.name)
		result[i].scores = map[string]*clusterv1alpha1.AddOnPlacementScore{}
		if scores := newScores(result[i].Name, random, region.idle); random.IntN(20) > 0 {
			result[i].scores[defaultScores] = scores
		}
	}
	give(result, "primary", "eu-west", 100)
	give(result, "backup", "us-west", 50)
	return result
}

func newCluster(i int, now time.Time, random *rand.Rand, region string) *clusterv1.ManagedCluster {
	result := fleet.Cluster(i, now)
	version, set := fmt.Sprintf("1.%d.%d", 28+random.IntN(7), random.IntN(4)), bound
	if random.IntN(5) == 0 {
		set = unbound
	}
	result.ObjectMeta = metav1.ObjectMeta{Name: result.Name, Labels: map[string]string{
		cloudLabel: result.Labels[cloudLabel], regionLabel: region, versionLabel: version,
		clusterv1beta2.ClusterSetLabel: set,
	}}
	result.Status.Version.Kubernetes = "v" + version
	claims := map[string]string{versionClaim: "v" + version, nodesClaim: "m5.xlarge,m5.2xlarge"}
	if random.IntN(3) == 0 {
		claims[nodesClaim] = "m5.xlarge,g6.xlarge"
		claims[gpusClaim] = newGPUs(random)
	}
	result.Status.ClusterClaims = nil
	for _, name := range []string{versionClaim, nodesClaim, gpusClaim} {
		if value, has := claims[name]; has {
			result.Status.ClusterClaims = append(result.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: name, Value: value})
		}
	}
	return result
}

// newGPUs lists node pools by GPU, as JSON. A third of them have no H100.
func newGPUs(random *rand.Rand) string {
	const a100 = `"A100": [{"Standard_NC48ads_A100_v4": 50}, {"Standard_NC96ads_A100_v4": 20}]`
	if random.IntN(3) == 0 {
		return "{" + a100 + "}"
	}
	return fmt.Sprintf(`{"H100": [{"Standard_NC48ads_H100_v4": 10}, {"Standard_NC96ads_H100_v4": %d}], %s}`, 2+6*random.IntN(2), a100)
}

func newScores(cluster string, random *rand.Rand, idle int) *clusterv1alpha1.AddOnPlacementScore {
	cpus := random.IntN(24)
	memory := []string{"64Mi", "100Mi", "512Mi", "2Gi", "1.5Gi", "48Gi"}[random.IntN(6)]
	return &clusterv1alpha1.AddOnPlacementScore{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: defaultScores, Annotations: map[string]string{
			setscores.QuantitiesAnnotation: fmt.Sprintf(`{%q: "%d", %q: %q}`, cpuScore, cpus, memoryScore, memory),
		}},
		Status: clusterv1alpha1.AddOnPlacementScoreStatus{Scores: []clusterv1alpha1.AddOnPlacementScoreItem{
			{Name: cpuScore, Value: int32(cpus)},
			{Name: memoryScore, Value: int32(random.IntN(100))},
			{Name: ratioScore, Value: int32(min(100, random.IntN(120)-60+idle))},
		}},
	}
}

// give gives a role in the story of recovery to the first cluster of a region that
// can have it.
func give(members []member, role, region string, score int32) {
	for _, m := range members {
		if m.Labels[regionLabel] == region && m.Labels[clusterv1beta2.ClusterSetLabel] == bound {
			m.Labels[shopLabel] = role
			m.scores[recoveryScores] = &clusterv1alpha1.AddOnPlacementScore{
				ObjectMeta: metav1.ObjectMeta{Namespace: m.Name, Name: recoveryScores},
				Status: clusterv1alpha1.AddOnPlacementScoreStatus{
					Scores: []clusterv1alpha1.AddOnPlacementScoreItem{{Name: roleScore, Value: score}},
				},
			}
			return
		}
	}
}
