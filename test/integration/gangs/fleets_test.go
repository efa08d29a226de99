// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/gangfleet"
	"github.com/celset/celset/test/internal/env"
)

// These tests run the gang examples on models of the machines that the examples are written for.

// A fleet is a lab whose nodes have the positions, labels and devices of real hosts.
type fleet struct {
	*nodes
	hosts gangfleet.Fleet
}

func newFleet(t *testing.T, name string, hosts gangfleet.Fleet) *fleet {
	l := &fleet{newNodes(t, name, len(hosts), hosts.Labels), hosts}
	published := l.Client().ResourceV1().ResourceSlices()
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, h := range hosts {
		own, err := h.Devices.ResourceSlices(l.Nodes[i])
		require.NoError(t, err)
		for _, slice := range own {
			slice.Labels = map[string]string{env.LabLabel: l.Namespace}
			group.Go(func() error {
				_, err := published.Create(t.Context(), slice, metav1.CreateOptions{})
				return err
			})
		}
	}
	env.CleanUp(t, func(ctx context.Context) error {
		return published.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: env.LabLabel + "=" + l.Namespace})
	})
	require.NoError(t, group.Wait())
	return l
}

// apply applies an example, waits until the pods of its job run, and returns their names.
func (l *fleet) apply(t *testing.T, example string, pods int, classes ...string) (names []string) {
	t.Helper()
	_, err := l.Kubectl(t, l.Namespace, "apply", "-f", env.Manifest(t, "examples", "gangs", example))
	require.NoError(t, err)
	for _, class := range classes {
		env.CleanUp(t, func(ctx context.Context) error {
			return l.Client().ResourceV1().DeviceClasses().Delete(ctx, class, metav1.DeleteOptions{})
		})
	}
	env.Until(t, "the job has its pods", func(ctx context.Context) (bool, error) {
		list, err := l.Client().CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "job=train-" + strings.TrimSuffix(example, ".yaml")})
		if err != nil {
			return false, err
		}
		names = nil
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return len(names) == pods, nil
	})
	l.RequireRunning(t, names...)
	return names
}

// gang creates a PodGroup that refers to a constraint in a class, and its pods, whose claims come from the template.
func (l *fleet) gang(t *testing.T, name, constraint string, pods int, template string, edit func(*corev1.Pod)) []string {
	t.Helper()
	l.podGroup(t, name, "celset.dev/"+constraint, pods, nil)
	return l.members(t, name, pods, edit, func(pod *corev1.Pod) { useAs(env.PodFrom(pod.Name, env.CelsetProfile, template), pod) })
}

// counts returns how many of the pods run on hosts with each value of a coordinate.
func (l *fleet) counts(t *testing.T, axis int, pods ...string) map[int]int {
	t.Helper()
	counts := map[int]int{}
	for _, i := range l.on(t, pods...) {
		counts[l.hosts[i].At[axis]]++
	}
	return counts
}

// use creates pods that fill each host if isUsed returns true.
func (l *fleet) use(t *testing.T, isUsed func(at []int) bool) {
	t.Helper()
	for i, h := range l.hosts {
		if isUsed(h.At) {
			l.occupy(t, i)
		}
	}
}

// TestSliceOfATPUTorus fills about half of the hosts. The only free block is in the first plane, around two edges. The torus
// has one plane in "make test" and four in "make nightly".
func TestSliceOfATPUTorus(t *testing.T) {
	l := newFleet(t, "tpu", gangfleet.Torus(16, 16, cases.Of(1, 4)))
	around := func(at int) bool { return at < 2 || at >= 14 }
	l.use(t, func(at []int) bool {
		return (at[0]/2+at[1]/2)%2 == 0 && !(around(at[0]) && around(at[1]) && at[2] == 0)
	})
	pods := l.apply(t, "tpu-slices.yaml", 16, "tpu.example.com")
	four := map[int]int{0: 4, 1: 4, 14: 4, 15: 4}
	for axis, want := range []map[int]int{four, four, {0: 16}} {
		require.Equal(t, want, l.counts(t, axis, pods...))
	}
	for _, pod := range pods {
		require.Len(t, l.DevicesOf(t, pod), 4)
	}
}

// TestNVLinkDomains runs groups on five racks of eighteen trays. At first, one or three trays of each rack are in use.
func TestNVLinkDomains(t *testing.T) {
	l := newFleet(t, "nvl72", gangfleet.Racks(20).Only(func(at []int) bool { return slices.Contains([]int{0, 1, 7, 18, 19}, at[0]) }))
	l.use(t, func(at []int) bool { return at[1] < map[int]int{0: 1, 1: 3, 7: 3, 18: 1, 19: 1}[at[0]] })
	two := l.counts(t, 0, l.apply(t, "nvl72.yaml", 32, "gb200.example.com")...)
	require.Len(t, two, 2)
	for rack, count := range two {
		require.Equal(t, 16, count, "rack %d", rack)
		require.Contains(t, []int{0, 18, 19}, rack)
	}

	// The group wants the eighteen trays of one rack. It must wait until a whole rack is free.
	rack := l.gang(t, "rack", "one_nvlink_domain", 18, "tray", whole)
	l.requireRefused(t, rack[0], "no set of 18 nodes satisfies constraint celset.dev/one_nvlink_domain")
	for i, h := range l.hosts {
		if h.At[0] == 7 && h.At[1] < 3 {
			l.DeletePod(t, fmt.Sprintf("occupies-%d", i))
		}
	}
	require.Equal(t, map[int]int{7: 18}, l.counts(t, 0, rack...))

	// The group wants four consecutive racks on a circle of twenty. Two of the racks have one free tray each.
	row := map[int]int{18: 1, 19: 1, 0: 1, 1: 1}
	first := l.gang(t, "first", "a_node_in_each_of_four_racks", 4, "tray", whole)
	require.Equal(t, row, l.counts(t, 0, first...))
	second := l.gang(t, "second", "a_node_in_each_of_four_racks", 4, "tray", whole)
	l.requireRefused(t, second[0], "no set of 4 nodes satisfies constraint celset.dev/a_node_in_each_of_four_racks")
	for _, name := range first {
		l.DeletePod(t, name)
	}
	require.Equal(t, row, l.counts(t, 0, second...))
}

// TestRailsOfAFatTree uses interfaces on nine nodes. Without the constraint, the pods would get interfaces of different rails.
func TestRailsOfAFatTree(t *testing.T) {
	l := newFleet(t, "rails", gangfleet.FatTree(4, 6))
	l.CreateClass(t, "nic.example.com")
	for i := range 9 {
		l.OccupyAs(t, env.CelsetProfile, l.Nodes[i], l.hosts[i].Devices, "nic-0", "nic-1")
	}
	pods := l.apply(t, "rails.yaml", 16, "gpu.example.com", "nic.example.com")
	rails := l.railsOf(t, pods[0])
	require.Len(t, rails, 4)
	for _, pod := range pods {
		require.Equal(t, rails, l.railsOf(t, pod))
	}
	require.Len(t, l.counts(t, 0, l.gang(t, "leaf", "few_leafs", 6, "half-a-node", half)...), 1)
}

// TestBlockOfAThousandHosts fills half of a torus of 32x32 hosts. Free blocks of 4x4 exist only around an edge, and each two of
// them overlap. One of two groups must get a block and the other must wait, even if the scheduler restarts while the groups are
// created.
func TestBlockOfAThousandHosts(t *testing.T) {
	const block = "nodes.box(n, [int(n.labels.x), int(n.labels.y)], [4, 4], [32, 32])"
	l := newNodes(t, "many", 1024, at(32))
	var used []int
	for i := range 1024 {
		if x, y := i/32, i%32; (x/2+y/2)%2 == 0 && !((x >= 30 || x < 2) && 5 <= y && y < 11) {
			used = append(used, i)
		}
	}
	l.occupy(t, used...)
	members := l.group(t, "many", block, "", 16, 16, whole)
	begin := time.Now()
	l.requireBlock(t, members)
	t.Logf("%d pods bound %v after the last was created", len(members), time.Since(begin))
	for _, name := range members {
		l.DeletePod(t, name)
	}

	a, b := l.group(t, "one", block, "", 16, 8, whole), l.group(t, "another", block, "", 16, 8, whole)
	restartScheduler(l.Env, func() {
		for i := 8; i < 16; i++ {
			a, b = append(a, l.member(t, "one", i, whole)), append(b, l.member(t, "another", i, whole))
		}
	})
	winner, loser := l.requireOneWins(t, a, b)
	l.requireBlock(t, winner)
	for _, name := range winner {
		l.DeletePod(t, name)
	}
	l.requireBlock(t, loser)
}

// requireBlock requires that the pods run on a 4x4 block around an edge of the torus.
func (l *nodes) requireBlock(t *testing.T, members []string) {
	t.Helper()
	rows, columns := map[int]int{}, map[int]int{}
	for _, i := range l.on(t, members...) {
		rows[i/32]++
		columns[i%32]++
	}
	require.Equal(t, map[int]int{30: 4, 31: 4, 0: 4, 1: 4}, rows)
	first := slices.Min(slices.Collect(maps.Keys(columns)))
	require.Equal(t, map[int]int{first: 4, first + 1: 4, first + 2: 4, first + 3: 4}, columns)
}

// railsOf returns the rails of the network interfaces that a pod got.
func (l *fleet) railsOf(t *testing.T, pod string) (rails []string) {
	t.Helper()
	for _, device := range l.DevicesOf(t, pod) {
		if d, ok := l.hosts[0].Devices.Device(device); ok && d.Driver == "nic.example.com" {
			rails = append(rails, device)
		}
	}
	slices.Sort(rails)
	return rails
}
