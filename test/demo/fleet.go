// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/internal/testing/fleet"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/story"
)

// cities are the clusters. taken lists the devices that other pods use. Each cluster has four free devices in a ring of eight.
// Only in berlin they are connected. It must not be the first cluster, because the first cluster wins a tie.
var cities = []struct {
	name  string
	taken []string
}{
	{"amsterdam", []string{"mla-1", "mla-3", "mla-5", "mla-7"}},
	{"berlin", []string{"mla-0", "mla-5", "mla-6", "mla-7"}},
	{"cologne", []string{"mla-0", "mla-3", "mla-4", "mla-7"}},
}

// FleetClusters returns the names of the clusters. The scheduler of each cluster is a user of the hub with the cluster's name.
func FleetClusters() []string {
	var names []string
	for _, city := range cities {
		names = append(names, city.name)
	}
	return names
}

// fleetDemo is a demo on a hub and its clusters.
type fleetDemo struct {
	hub *demo
	// members holds the demo on each cluster. Each has a single site.
	members []*demo
}

// RunFleet shows two Placements on a hub with the clusters of [FleetClusters]. The first ranks clusters by their number of
// devices, and selects a cluster where the pod does not fit. The second ranks clusters by the number of free sets, which their
// schedulers publish on the hub, and selects the right cluster.
func RunFleet(ctx context.Context, hub Options, clusters []*rest.Config) (err error) {
	f := &fleetDemo{}
	var known []cluster
	group, setUp := errgroup.WithContext(ctx)
	for i, config := range clusters {
		m, err := newDemo(Options{Config: config, Examples: manifests, Out: hub.Out, Color: hub.Color})
		if err != nil {
			return err
		}
		m.sites = []site{{story.Ring(), cities[i].name + "-0", cities[i].taken}}
		f.members = append(f.members, m)
		known = append(known, cluster{ManagedCluster: managedCluster(i, m.sites[0])})
		group.Go(func() error { return m.setUpMember(setUp, cities[i].name) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if f.hub, err = newHub(ctx, hub, known); err != nil {
		return err
	}
	for _, name := range FleetClusters() {
		if err := f.hub.apply(ctx, "fleet/publisher.yaml", "CLUSTER", name); err != nil {
			return err
		}
	}
	return acts(ctx, f.introduce, f.totals, f.sets)
}

// managedCluster returns the ManagedCluster for a site. Its status is as an OCM agent would write it.
func managedCluster(i int, s site) *clusterv1.ManagedCluster {
	result := fleet.Cluster(i, time.Now())
	result.ObjectMeta = metav1.ObjectMeta{Name: cities[i].name, Labels: map[string]string{clusterv1beta2.ClusterSetLabel: production}}
	result.Status.Allocatable[clusterv1.ResourceName(s.Driver())] = *resource.NewQuantity(int64(len(s.Topology.Devices)), resource.DecimalSI)
	return result
}

// setUpMember creates a node with devices, and a pod that uses some of the devices.
func (d *demo) setUpMember(ctx context.Context, name string) error {
	if _, err := controlplane.CreateNodes(ctx, d.kube, 1, controlplane.NodeOptions{Prefix: name}); err != nil {
		return err
	}
	if err := d.apply(ctx, "fleet/deviceclasses.yaml"); err != nil {
		return err
	}
	return d.furnish(ctx)
}

func (f *fleetDemo) introduce(ctx context.Context) error {
	f.hub.say("A hub, where Placements select clusters, and three clusters, each with an API server and a celset-scheduler")
	f.hub.say("of its own. In each cluster a node has a ring of eight accelerators. Another pod has four of them, which have")
	f.hub.say("a letter below; lines are links between accelerators.\n")
	for _, m := range f.members {
		if err := m.draw(ctx, "", m.sites...); err != nil {
			return err
		}
	}
	return nil
}

// totals shows a Placement that ranks clusters by their number of devices.
func (f *fleetDemo) totals(ctx context.Context) error {
	f.hub.say("1. By totals. Each cluster reports eight accelerators as allocatable (on a hub with Open Cluster Management its")
	f.hub.say("   agents do so, here the demo does), and in each four are free:\n")
	for i, m := range f.members {
		free, err := m.devices(ctx, m.sites[0], "")
		if err != nil {
			return err
		}
		total := f.hub.clusters[i].Status.Allocatable[clusterv1.ResourceName(m.sites[0].Driver())]
		f.hub.say("   %-10s status.allocatable %s, free %d", cities[i].name, &total, len(free))
	}
	misled, name, err := f.decide(ctx, "totals")
	if err != nil {
		return err
	}
	f.hub.say("   The decision is %s. A pod that wants four connected accelerators is created there, and stays Pending:\n", name)
	if err := misled.apply(ctx, "fleet/ring-4-connected.yaml"); err != nil {
		return err
	}
	return misled.showWaiting(ctx, "ring", "no set of 4 free devices satisfies constraint ring4")
}

// sets shows a Placement that ranks clusters by their number of free sets.
func (f *fleetDemo) sets(ctx context.Context) error {
	f.hub.say("2. By sets. Each scheduler publishes on the hub how many sets of four connected accelerators fit now. The name")
	f.hub.say("   of the number is DeviceClass/constraint/devices in a set/now:\n")
	// The schedulers count only every few seconds. Until then, the published numbers may be from before other pods took devices.
	published := make([]string, len(f.members))
	key := setscores.Key{Class: f.members[0].sites[0].Driver(), Constraint: "ring4", Devices: 4, State: setscores.Now}.String()
	err := until(ctx, func(ctx context.Context) (bool, error) {
		for i, city := range cities {
			score := &clusterv1alpha1.AddOnPlacementScore{}
			if err := f.hub.client.Get(ctx, client.ObjectKey{Namespace: city.name, Name: setscores.Name}, score); err != nil {
				return false, client.IgnoreNotFound(err)
			}
			var quantities map[string]string
			if err := json.Unmarshal([]byte(score.Annotations[setscores.QuantitiesAnnotation]), &quantities); err != nil {
				return false, err
			}
			published[i] = quantities[key]
		}
		return slices.Equal(published, []string{"0", "1", "0"}), nil
	})
	if err != nil {
		return fmt.Errorf("wait until the schedulers publish %s: %w (last: %q)", key, err, published)
	}
	for i, city := range cities {
		f.hub.say("   %-10s %s: %s", city.name, key, published[i])
	}
	chosen, name, err := f.decide(ctx, "sets")
	if err != nil {
		return err
	}
	f.hub.say("   The decision is %s. The same pod is created there, and runs:\n", name)
	return chosen.show(ctx, "ring", "fleet/ring-4-connected.yaml")
}

// decide applies a Placement and prints it. It returns the cluster that the Placement selects, and the cluster's name.
func (f *fleetDemo) decide(ctx context.Context, name string) (*demo, string, error) {
	file := "fleet/" + name + ".yaml"
	manifest, err := manifests.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	_, spec, _ := strings.Cut(string(manifest), "\nspec:\n")
	f.hub.say("")
	f.hub.lines(bar, "spec:\n"+spec)
	if err := f.hub.apply(ctx, file); err != nil {
		return nil, "", err
	}
	got, err := f.hub.decided(ctx, Team, name, func(got decision) bool { return len(got.clusters) == 1 })
	if err != nil {
		return nil, "", err
	}
	chosen := got.clusters[0].ClusterName
	return f.members[slices.Index(FleetClusters(), chosen)], chosen, nil
}
