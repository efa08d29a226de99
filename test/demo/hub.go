// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/internal/testing/fleet"
)

const (
	// Team is the namespace of the demo's Placements. They may select clusters of the ManagedClusterSet production.
	Team       = "team"
	production = fleet.ClusterSet

	regionLabel = "region"
	// shopLabel is the label with the role, primary or backup, of the two clusters in the demo of disaster recovery.
	shopLabel = "shop"
	// gpusClaim is the ClusterClaim that lists a cluster's GPU node pools as JSON. nodeClaim is the ClusterClaim that lists the
	// types of its nodes.
	gpusClaim = "sku.gpu.kubernetes-fleet.io"
	nodeClaim = "sku.node.k8s.io"
)

// cluster is a ManagedCluster with its AddOnPlacementScore. The score is a zero value if the cluster has no score.
type cluster struct {
	*clusterv1.ManagedCluster
	scores clusterv1alpha1.AddOnPlacementScore
}

// regions are the regions of the clusters. idle raises the score cpuratio of all clusters in the region.
var regions = []struct {
	name string
	idle int
}{{"ap-south", 0}, {"eu-central", 10}, {"eu-west", 0}, {"us-east", 45}, {"us-west", 20}}

// newClusters generates 200 clusters, each with a cloud, a region, a version and scores. The result is always the same.
func newClusters(now time.Time) []cluster {
	result := make([]cluster, 200)
	for i := range result {
		random := rand.New(rand.NewPCG(5254, uint64(i)))
		region := regions[random.IntN(len(regions))]
		result[i].ManagedCluster = newCluster(i, now, random, region.name)
		if scores := newScores(result[i].Name, random, region.idle); random.IntN(20) > 0 {
			result[i].scores = scores
		}
	}
	openShop(result, "primary", "eu-west", 100)
	openShop(result, "backup", "us-west", 50)
	return result
}

func newCluster(i int, now time.Time, random *rand.Rand, region string) *clusterv1.ManagedCluster {
	result := fleet.Cluster(i, now)
	version, set := fmt.Sprintf("1.%d.%d", 28+random.IntN(7), random.IntN(4)), production
	if random.IntN(5) == 0 {
		set = "staging"
	}
	result.ObjectMeta = metav1.ObjectMeta{Name: result.Name, Labels: map[string]string{
		"cloud": result.Labels["cloud"], regionLabel: region, "version": version, clusterv1beta2.ClusterSetLabel: set,
	}}
	result.Status.Version.Kubernetes = "v" + version
	result.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{
		{Name: "kubeversion.open-cluster-management.io", Value: "v" + version}, {Name: nodeClaim, Value: "m5.xlarge,m5.2xlarge"},
	}
	if random.IntN(3) == 0 {
		gpus := `{"A100": [{"Standard_NC96ads_A100_v4": 20}]}`
		if random.IntN(3) > 0 {
			gpus = fmt.Sprintf(`{"H100": [{"Standard_NC96ads_H100_v4": %d}]}`, 2+6*random.IntN(2))
		}
		result.Status.ClusterClaims[1].Value = "m5.xlarge,g6.xlarge"
		result.Status.ClusterClaims = append(result.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: gpusClaim, Value: gpus})
	}
	return result
}

func newScores(cluster string, random *rand.Rand, idle int) clusterv1alpha1.AddOnPlacementScore {
	cpus := random.IntN(24)
	memory := []string{"64Mi", "100Mi", "512Mi", "2Gi", "1.5Gi", "48Gi"}[random.IntN(6)]
	return clusterv1alpha1.AddOnPlacementScore{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "default", Annotations: map[string]string{
			setscores.QuantitiesAnnotation: fmt.Sprintf(`{"cpuAvailable": "%d", "memAvailable": %q}`, cpus, memory),
		}},
		Status: clusterv1alpha1.AddOnPlacementScoreStatus{Scores: []clusterv1alpha1.AddOnPlacementScoreItem{
			{Name: "cpuAvailable", Value: int32(cpus)},
			{Name: "memAvailable", Value: int32(random.IntN(100))},
			{Name: "cpuratio", Value: int32(min(100, random.IntN(120)-60+idle))},
		}},
	}
}

// openShop chooses the first production cluster of the region that has scores. It sets the label shop to the role, and the
// score "workload" to score.
func openShop(clusters []cluster, role, region string, score int32) {
	for i := range clusters {
		c := &clusters[i]
		if c.Labels[regionLabel] == region && c.Labels[clusterv1beta2.ClusterSetLabel] == production && c.scores.Name != "" {
			c.Labels[shopLabel] = role
			c.scores.Status.Scores = append(c.scores.Status.Scores, clusterv1alpha1.AddOnPlacementScoreItem{Name: "workload", Value: score})
			return
		}
	}
}

// FurnishHub creates 200 clusters on a hub, and ManagedClusterSets that Placements in the namespace [Team] may use. The CRDs of
// package test/hub must be installed.
func FurnishHub(ctx context.Context, options Options) error {
	_, err := newHub(ctx, options, newClusters(time.Now()))
	return err
}

// newHub creates the clusters and the ManagedClusterSets on a hub.
func newHub(ctx context.Context, options Options, clusters []cluster) (*demo, error) {
	options.Examples = manifests
	d, err := newDemo(options)
	if err != nil {
		return nil, err
	}
	if err := d.apply(ctx, "placement/hub.yaml"); err != nil {
		return nil, err
	}
	d.clusters = clusters
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for _, c := range clusters {
		group.Go(func() error { return d.join(creating, c) })
	}
	return d, group.Wait()
}

// join creates a ManagedCluster, its namespace, and its scores if it has any.
func (d *demo) join(ctx context.Context, c cluster) error {
	status := c.Status
	if err := d.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}, c.ManagedCluster); err != nil {
		return err
	}
	c.Status = status
	if err := d.client.Status().Update(ctx, c.ManagedCluster); err != nil || c.scores.Name == "" {
		return err
	}
	scores := c.scores.Status
	if err := d.create(ctx, &c.scores); err != nil {
		return err
	}
	c.scores.Status = scores
	return d.client.Status().Update(ctx, &c.scores)
}
