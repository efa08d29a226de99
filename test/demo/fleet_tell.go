// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/setscores"
)

// wanted is how many devices the pod wants, and as many are free in each cluster.
const wanted = 4

func (f *fleet) tell(ctx context.Context) error {
	say := f.members[0].say
	say("A hub, where Placements select clusters, and three clusters, each with an API server and a celset-scheduler")
	say("of its own. In each cluster a node has a ring of eight accelerators. Another pod has four of them, which have")
	say("a letter below; lines are links between accelerators.\n")
	for _, m := range f.members {
		if err := m.draw(ctx, "", m.site); err != nil {
			return err
		}
	}

	say("1. By totals. Each cluster reports eight accelerators as allocatable (on a hub with Open Cluster Management its")
	say("   agents do so, here the demo does), and in each four are free:\n")
	for _, m := range f.members {
		if err := f.showTotals(ctx, m); err != nil {
			return err
		}
	}
	misled, err := f.decide(ctx, "totals.yaml")
	if err != nil {
		return err
	}
	say("   The decision is %s. A pod that wants four connected accelerators is created there, and stays Pending:\n", misled.name)
	if err := misled.waits(ctx, misled.Pod, nil, "ring4: no set of 4 free devices satisfies it", "4 of 8 devices for request mla are free"); err != nil {
		return err
	}

	say("2. By sets. Each scheduler publishes on the hub how many sets of four connected accelerators fit now. The name")
	say("   of the number is DeviceClass/constraint/devices in a set/now:\n")
	for _, m := range f.members {
		if err := f.showSets(ctx, m); err != nil {
			return err
		}
	}
	chosen, err := f.decide(ctx, "sets.yaml")
	if err != nil {
		return err
	}
	say("   The decision is %s. The same pod is created there, and runs:\n", chosen.name)
	if err := chosen.tell(ctx, chosen.Story); err != nil {
		return err
	}
	if err := misled.hasNothing(ctx, misled.Pod); err != nil {
		return err
	}
	say("The pod in %s still waits. All of the above was read back from the API servers and checked.", misled.name)
	return nil
}

// decide shows a Placement and returns the cluster that it selects.
func (f *fleet) decide(ctx context.Context, file string) (*member, error) {
	manifest, err := fleetManifests.ReadFile("fleet/" + file)
	if err != nil {
		return nil, err
	}
	_, spec, _ := strings.Cut(string(manifest), "\nspec:\n")
	f.members[0].say("")
	f.hub.Quote("spec:\n" + spec)
	f.members[0].say("")
	name, err := f.hub.Decide(ctx, manifest)
	if err != nil {
		return nil, err
	}
	for _, m := range f.members {
		if m.name == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("the cluster %s is selected, which is none of %v", name, FleetClusters())
}

// showTotals shows what the hub knows of a cluster, and what is so in it.
func (f *fleet) showTotals(ctx context.Context, m *member) error {
	free, err := m.free(ctx)
	if err != nil {
		return err
	}
	cluster := &clusterv1.ManagedCluster{}
	if err := f.hub.Client().Get(ctx, client.ObjectKey{Name: m.name}, cluster); err != nil {
		return err
	}
	total := cluster.Status.Allocatable[m.resource()]
	if int(total.Value()) != len(m.Topology.Devices) || len(free) != wanted {
		return fmt.Errorf("cluster %s reports %s devices and has %d free, not %d", m.name, &total, len(free), wanted)
	}
	m.say("   %-10s status.allocatable %s, free %d", m.name, &total, len(free))
	return nil
}

// free are the devices in a cluster that nobody has.
func (m *member) free(ctx context.Context) (free []string, err error) {
	marks, err := m.marks(ctx, "")
	for _, device := range m.Topology.Devices {
		if _, taken := marks[m.node][device.Name]; !taken {
			free = append(free, device.Name)
		}
	}
	return free, err
}

// showSets waits until the scheduler of a cluster has published what is so, and shows it: one set if
// the free devices are one, which are as many.
func (f *fleet) showSets(ctx context.Context, m *member) error {
	free, err := m.free(ctx)
	if err != nil {
		return err
	}
	want := "0"
	if m.Holds(free) {
		want = "1"
	}
	name := setscores.Key{Class: m.Driver(), Constraint: "ring4", Devices: wanted, State: setscores.Now}.String()
	var published map[string]string
	err = wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		score := &clusterv1alpha1.AddOnPlacementScore{}
		if err := f.hub.Client().Get(ctx, client.ObjectKey{Namespace: m.name, Name: setscores.Name}, score); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		published = nil
		err := json.Unmarshal([]byte(score.Annotations[setscores.QuantitiesAnnotation]), &published)
		return published[name] == want, err
	})
	if err != nil {
		return fmt.Errorf("the scheduler of %s should publish %s sets as %s: %w (last: %v)", m.name, want, name, err, published)
	}
	m.say("   %-10s %s: %s", m.name, name, want)
	return nil
}
