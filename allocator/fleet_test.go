// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// fleet is nodes, and lists of claims each of which is tried on each node in each of
// some scheduling cycles.
type fleet struct {
	listAttributes bool
	classes        classes
	nodes          []*v1.Node
	pods           [][]*resourceapi.ResourceClaim
	cycles         []*cycle
}

// cycle is what changes with time. Slices that don't are the same objects.
type cycle struct {
	slices []*resourceapi.ResourceSlice
	state  structured.AllocatedState
}

func newFleet(cycles int) *fleet {
	f := &fleet{classes: classes{}}
	for range cycles {
		f.cycles = append(f.cycles, &cycle{state: structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()}})
	}
	return f
}

// addNode adds a node with copies of the slices.
func (f *fleet) addNode(of ...*sliceBuilder) (name string) {
	name = fmt.Sprintf("node-%d", len(f.nodes))
	f.nodes = append(f.nodes, newNode(name))
	published := published(name, of)
	for _, c := range f.cycles {
		c.slices = append(c.slices, published...)
	}
	return name
}

// published are copies of the slices for a node. Its pools are named like the node.
func published(node string, of []*sliceBuilder) []*resourceapi.ResourceSlice {
	var result []*resourceapi.ResourceSlice
	for _, original := range of {
		slice := original.DeepCopy()
		slice.Name = node + "-" + slice.Name
		slice.Spec.Pool.Name = node
		slice.Spec.NodeName = &node
		result = append(result, slice)
	}
	return result
}

// replace gives a node other slices from a cycle on.
func (f *fleet) replace(from int, node string, by ...*sliceBuilder) {
	published := published(node, by)
	for _, c := range f.cycles[from:] {
		c.slices = slices.DeleteFunc(c.slices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.Pool.Name == node })
		c.slices = append(c.slices, published...)
	}
}

// addShared adds a slice that all nodes can use.
func (f *fleet) addShared(of *sliceBuilder) {
	for _, c := range f.cycles {
		c.slices = append(c.slices, of.everywhere().pool("shared", 1, 1).ResourceSlice)
	}
}

// take marks a device of a node as allocated in a cycle.
func (f *fleet) take(cycle int, driver, node, device string) {
	f.cycles[cycle].state.AllocatedDevices.Insert(structured.MakeDeviceID(driver, node, device))
}

func (f *fleet) addPod(claims ...*claimBuilder) {
	var pod []*resourceapi.ResourceClaim
	for _, c := range claims {
		pod = append(pod, c.ResourceClaim)
	}
	f.pods = append(f.pods, pod)
}

func (f *fleet) features() structured.Features {
	if f.listAttributes {
		return *listsOn
	}
	return allOn
}

// selectorCaches are the caches of selectors without and with list attributes.
// Compiling selectors anew for each fleet would take longer than everything else.
var selectorCaches = [2]func() *dracel.Cache{
	sync.OnceValue(func() *dracel.Cache { return dracel.NewCache(100, dracel.Features{EnableConsumableCapacity: true}) }),
	sync.OnceValue(func() *dracel.Cache {
		return dracel.NewCache(100, dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	}),
}

func (f *fleet) allocator(t testing.TB, cycle int, opts ...Option) *Allocator {
	t.Helper()
	selectors := selectorCaches[0]()
	if f.listAttributes {
		selectors = selectorCaches[1]()
	}
	a, err := NewAllocator(t.Context(), f.features(), f.cycles[cycle].state, f.classes, f.cycles[cycle].slices, selectors, append(opts, WithReasons())...)
	require.NoError(t, err)
	return a
}

// question is one that a fleet's allocator is asked in a cycle.
type question struct{ node, pod int }

// questions lists all of one cycle: all pods for the first node, and so on.
func (f *fleet) questions() []question {
	var result []question
	for node := range f.nodes {
		for pod := range f.pods {
			result = append(result, question{node, pod})
		}
	}
	return result
}

func (f *fleet) ask(ctx context.Context, a *Allocator, q question) answer {
	return answerOf(a.Allocate(ctx, f.nodes[q.node], f.pods[q.pod]))
}

// describe is all that an answer depends on.
func (f *fleet) describe(cycle int, q question) string {
	var local []resourceapi.ResourceSliceSpec
	for _, slice := range f.cycles[cycle].slices {
		if node := slice.Spec.NodeName; node == nil || *node == f.nodes[q.node].Name {
			local = append(local, slice.Spec)
		}
	}
	var claims []resourceapi.ResourceClaimSpec
	for _, claim := range f.pods[q.pod] {
		claims = append(claims, claim.Spec)
	}
	state := &f.cycles[cycle].state
	text, err := yaml.Marshal(map[string]any{
		"claims": claims, "slices": local, "listAttributes": f.listAttributes,
		"inUse":  fmt.Sprint(sets.List(sets.New(deviceNames(state.AllocatedDevices)...))),
		"shares": fmt.Sprint(state.AllocatedSharedDeviceIDs, " ", state.AggregatedCapacity),
	})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("cycle %d, %s, pod %d:\n%s", cycle, f.nodes[q.node].Name, q.pod, text)
}

func deviceNames(ids sets.Set[structured.DeviceID]) []string {
	var names []string
	for id := range ids {
		names = append(names, id.String())
	}
	return names
}

// copyOf is the scenario with slices of its own.
func (s scenario) copyOf() scenario {
	result := s
	result.slices = nil
	for _, slice := range s.slices {
		result.slices = append(result.slices, &sliceBuilder{slice.DeepCopy()})
	}
	return result
}

// addScenario adds the node of a scenario, with what it has allocated in all cycles.
func (f *fleet) addScenario(s scenario) (name string) {
	name = f.addNode(s.slices...)
	for cycle, c := range f.cycles {
		for _, device := range s.inUse {
			f.take(cycle, driver, name, device)
		}
		for _, share := range s.shares {
			share.pool = name
			share.addTo(&c.state)
		}
	}
	f.listAttributes = f.listAttributes || ptr.Deref(s.features, allOn).ListTypeAttributes
	return name
}
