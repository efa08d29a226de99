// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement"
)

// core is the label of the clusters that every Placement selects, however it changes.
const core = "core"

// TestKilledAtRandom kills the program again and again, most of the time while it
// writes, and changes Placements and clusters all the while.
func TestKilledAtRandom(t *testing.T) {
	cases.OnlyNightly(t, "where the program is killed depends on the machine")
	binary, h := build(t), newHub(t, controlplane.Options{})
	const clusters, cores = 260, 5
	h.join(t, 0, clusters)
	h.score(t, clusters)
	members := sets.New[string]()
	each(t, cores, func(ctx context.Context, i int) error { return h.relabel(ctx, nameOf(50*i), core, "yes") })
	for i := range cores {
		members.Insert(nameOf(50 * i))
	}
	random := rand.New(rand.NewPCG(1, 2))
	placements := make([]*clusterv1beta1.Placement, 50)
	expected := map[string]sets.Set[string]{}
	for i := range placements {
		placements[i] = h.place(t, fmt.Sprintf("p%d", i), anySpec(random))
		expected[placements[i].Name] = members
	}
	o := h.observe(t)
	start := func() *instance {
		return start(t, binary, h.Kubeconfig(), "--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=1000")
	}
	running := start()
	h.requireSettled(t)
	o.catchUp(t)
	o.expect(expected)

	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan error, 1)
	go func() { changed <- h.keepChanging(ctx, rand.New(rand.NewPCG(3, 4)), placements, clusters) }()
	writing := 0
	for range 100 {
		// Some die as they start, or when they have nothing to do. How long it takes until they
		// write is the machine's matter.
		if random.IntN(4) == 0 {
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		} else {
			o.requireEvent(t, random.IntN(20))
			writing++
		}
		running.running(t)
		running.kill()
		running = start()
	}
	cancel()
	require.NoError(t, <-changed)
	listed := h.requireSettled(t)
	running.kill()
	require.Empty(t, listed.difference(t, true), "what was selected before does not matter to these Placements")
	o.requireStayed(t, o.catchUp(t))
	t.Logf("%d PlacementDecisions of %d Placements, %d events; killed %d times while writing", len(listed.decisions), len(placements), o.events, writing)
}

// requireEvent waits for the event with number n from now.
func (o *observer) requireEvent(t *testing.T, n int) {
	t.Helper()
	since := o.count()
	require.Eventually(t, func() bool { return o.count() > since+n }, env.Patience, time.Millisecond, "the program does not write, although there is always something to write")
}

// keepChanging changes a Placement or a cluster at a time until the context ends.
func (h *hub) keepChanging(ctx context.Context, random *rand.Rand, placements []*clusterv1beta1.Placement, clusters int) error {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		var err error
		if random.IntN(3) == 0 {
			err = h.relabel(ctx, nameOf(random.IntN(clusters)), "cloud", []string{"Amazon", "Azure", "Google"}[random.IntN(3)])
		} else {
			object := placements[random.IntN(len(placements))]
			wanted := anySpec(random)
			err = env.Change(ctx, h, object, func(p *clusterv1beta1.Placement) { p.Spec = wanted })
		}
		if ctx.Err() == nil && client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// anySpec is a spec that selects at least the core clusters, and does not depend on
// what was selected before.
func anySpec(random *rand.Rand) clusterv1beta1.PlacementSpec {
	spec := clusterv1beta1.PlacementSpec{
		PrioritizerPolicy: exactly(builtIn(placement.ResourceAllocatableCPU, int32(random.IntN(5)-2)), room(int32(random.IntN(5)-2))),
		SortBy:            []clusterv1beta1.PlacementSortByType{clusterv1beta1.PlacementSortByClusterName, clusterv1beta1.PlacementSortByScore}[random.IntN(2)],
		ScoreRateLimit:    "0s",
	}
	cloud := []string{"Amazon", "Azure", "Google"}[random.IntN(3)]
	selector := []clusterv1beta1.ClusterSelector{
		{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cloud": cloud}}},
		{ClaimSelector: clusterv1beta1.ClusterClaimSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubeversion.open-cluster-management.io", Operator: metav1.LabelSelectorOpIn, Values: []string{"1.29.0", "1.30.1", "1.31.2"}},
		}}},
		expression(`managedCluster.metadata.labels["cloud"] == %q || managedCluster.scores("room").exists(s, s.value > %d)`, cloud, random.IntN(100)),
		{},
	}[random.IntN(4)]
	spec.Predicates = []clusterv1beta1.ClusterPredicate{
		{RequiredClusterSelector: clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{core: "yes"}}}},
		{RequiredClusterSelector: selector},
	}
	spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup = []intstr.IntOrString{
		intstr.FromString("100%"), intstr.FromInt32(30), intstr.FromString("20%"),
	}[random.IntN(3)]
	if random.IntN(2) == 0 {
		spec.DecisionStrategy.GroupStrategy.DecisionGroups = []clusterv1beta1.DecisionGroup{{GroupName: cloud, ClusterSelector: clusterv1beta1.GroupClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"cloud": cloud}},
		}}}
	}
	if random.IntN(4) == 0 {
		// Everything, so no core cluster is left out.
		spec.NumberOfClusters = ptr.To[int32](1000)
	}
	return spec
}
