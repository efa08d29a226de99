// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	managed "github.com/celset/celset/internal/testing/fleet"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/demo/placement"
	"github.com/celset/celset/test/story"
)

// cities are the clusters, and the devices in them that others have. There are four of eight left
// in each, and only in one of them these are connected: not in the first one, which a tie decides for.
var cities = []struct {
	name  string
	taken []string
}{
	{"amsterdam", []string{"mla-1", "mla-3", "mla-5", "mla-7"}},
	{"berlin", []string{"mla-0", "mla-5", "mla-6", "mla-7"}},
	{"cologne", []string{"mla-0", "mla-3", "mla-4", "mla-7"}},
}

// FleetClusters are the names that the clusters have on the hub, and their schedulers as users of it.
func FleetClusters() []string {
	var names []string
	for _, city := range cities {
		names = append(names, city.name)
	}
	return names
}

//go:embed fleet
var fleetManifests embed.FS

// fleet is a demo on a hub and in clusters.
type fleet struct {
	members []*member
	hub     *placement.Hub
}

// member is a cluster, with one site.
type member struct {
	*demo
	site
	name string
}

// RunFleet shows on a hub, and in clusters of which there is one for each of [FleetClusters], how totals
// mislead a Placement, and sets of devices don't. The schedulers in the clusters publish these sets on the
// hub, and often. The error is nil only if all of it came out as it should.
func RunFleet(ctx context.Context, hub placement.Options, clusters []*rest.Config, color bool) error {
	publisher, err := fleetManifests.ReadFile("fleet/publisher.yaml")
	if err != nil {
		return err
	}
	f, rights := &fleet{}, []byte{}
	var known []*clusterv1.ManagedCluster
	for i, config := range clusters {
		m, err := newMember(i, Options{Config: config, Out: hub.Out, Color: color})
		if err != nil {
			return err
		}
		f.members = append(f.members, m)
		known = append(known, m.managed(i))
		rights = append(rights, bytes.ReplaceAll(publisher, []byte("CLUSTER"), []byte(m.name))...)
	}
	group, setUp := errgroup.WithContext(ctx)
	for _, m := range f.members {
		group.Go(func() error { return m.setUp(setUp) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return placement.OnHub(ctx, hub, known, func(ctx context.Context, running *placement.Hub) error {
		if _, err := controlplane.Apply(ctx, hub.Config, rights, controlplane.ApplyOptions{}); err != nil {
			return err
		}
		f.hub = running
		return f.tell(ctx)
	})
}

func newMember(i int, options Options) (m *member, err error) {
	name := cities[i].name
	m = &member{demo: &demo{Options: options}, site: site{story.Ring(), name + "-0", cities[i].taken}, name: name}
	m.sites = []site{m.site}
	if m.Examples, err = fs.Sub(fleetManifests, "fleet"); err != nil {
		return nil, err
	}
	m.client, err = kubernetes.NewForConfig(m.Config)
	return m, err
}

// managed is the cluster on the hub, with the status that an agent would write.
func (m *member) managed(i int) *clusterv1.ManagedCluster {
	cluster := managed.Cluster(i, time.Now())
	cluster.ObjectMeta = metav1.ObjectMeta{Name: m.name, Labels: map[string]string{clusterv1beta2.ClusterSetLabel: managed.ClusterSet}}
	cluster.Status.Allocatable[m.resource()] = *resource.NewQuantity(int64(len(m.Topology.Devices)), resource.DecimalSI)
	return cluster
}

func (m *member) resource() clusterv1.ResourceName { return clusterv1.ResourceName(m.Driver()) }

// setUp creates a node and its devices, and a pod that has some of them.
func (m *member) setUp(ctx context.Context) error {
	_, err := controlplane.CreateNodes(ctx, m.client, 1, controlplane.NodeOptions{Prefix: m.name})
	if err == nil {
		err = m.apply(ctx, "deviceclasses.yaml", nil)
	}
	if err == nil {
		err = m.furnish(ctx)
	}
	if err != nil {
		return fmt.Errorf("cluster %s: %w", m.name, err)
	}
	return nil
}
