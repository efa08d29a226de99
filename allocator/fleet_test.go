// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"maps"
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
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/corpus"
)

// fleet holds nodes and pods. Tests try the claims of each pod on each node in each scheduling cycle.
type fleet struct {
	listAttributes bool
	classes        classes
	nodes          []*v1.Node
	pods           [][]*resourceapi.ResourceClaim
	cycles         []*cycle
}

// cycle holds the state of one scheduling cycle. Unchanged slices are the same objects in all cycles.
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

// addNode adds a node that publishes copies of the slices.
func (f *fleet) addNode(of ...*sliceBuilder) (name string) {
	name = fmt.Sprintf("node-%d", len(f.nodes))
	f.nodes = append(f.nodes, newNode(name))
	published := publishedBy(name, of)
	for _, c := range f.cycles {
		c.slices = append(c.slices, published...)
	}
	return name
}

// publishedBy returns copies of the slices as published by a node. The name of each pool is the name of the node.
func publishedBy(node string, of []*sliceBuilder) []*resourceapi.ResourceSlice {
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

// replace replaces the slices of a node, in the given cycle and all later cycles.
func (f *fleet) replace(from int, node string, by ...*sliceBuilder) {
	published := publishedBy(node, by)
	for _, c := range f.cycles[from:] {
		c.slices = slices.DeleteFunc(c.slices, func(s *resourceapi.ResourceSlice) bool { return s.Spec.Pool.Name == node })
		c.slices = append(c.slices, published...)
	}
}

// addShared adds a slice whose devices all nodes can use.
func (f *fleet) addShared(of *sliceBuilder) {
	for _, c := range f.cycles {
		c.slices = append(c.slices, of.Everywhere().Pool("shared", 1, 1).ResourceSlice)
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

// selectorCaches holds two caches of compiled selectors, without and with list attributes. All fleets share them, because
// compiling selectors for each fleet would take most of the time.
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

// question is one Allocate call in a cycle: for the claims of the pod with this index, on the node with this index.
type question struct{ node, pod int }

// questions returns all questions of one cycle, sorted by node and then by pod.
func (f *fleet) questions() []question {
	var result []question
	for node := range f.nodes {
		for pod := range f.pods {
			result = append(result, question{node, pod})
		}
	}
	return result
}

func (f *fleet) ask(ctx context.Context, a *Allocator, q question) response {
	return answerOf(a.Allocate(ctx, f.nodes[q.node], f.pods[q.pod]))
}

// describe returns a text with everything that affects the result for a question, for failure messages.
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

// copyOf returns a copy of the scenario with copied slices and claims.
func (s scenario) copyOf() scenario {
	result := s
	result.Slices, result.Claims = nil, nil
	for _, c := range s.Claims {
		result.Claims = append(result.Claims, &claimBuilder{ResourceClaim: c.DeepCopy()})
	}
	for _, slice := range s.Slices {
		result.Slices = append(result.Slices, &sliceBuilder{ResourceSlice: slice.DeepCopy()})
	}
	return result
}

// addScenario adds the node of a scenario. The scenario's allocated devices are in use in all cycles.
func (f *fleet) addScenario(s scenario) (name string) {
	name = f.addNode(s.Slices...)
	for cycle, c := range f.cycles {
		for _, device := range s.InUse {
			f.take(cycle, driver, name, device)
		}
		for _, share := range s.Shares {
			share.Pool = name
			share.AddTo(&c.state)
		}
	}
	f.listAttributes = f.listAttributes || ptr.Deref(s.Features, allOn).ListTypeAttributes
	return name
}

// corpusFleet draws nodes of one hardware type, and claims with expressions written for it.
func corpusFleet(t *rapid.T) *fleet {
	all := corpus.Expressions()
	f := newFleet(rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "cycles"))
	f.listAttributes = oneIn(t, 2, "list attributes")
	main := rapid.SampledFrom(all).Draw(t, "expression")
	for _, driver := range main.Hardware.Drivers() {
		f.classes[driver] = classOf(driver, "device.driver == '"+driver+"'")
	}
	for range rapid.SampledFrom([]int{2, 4, 6, 8}).Draw(t, "nodes") {
		addCorpusNode(t, f, main.Hardware)
	}
	for range rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "pods") {
		f.addPod(corpusClaim(t, main, all))
	}
	return f
}

// addCorpusNode adds a node of the hardware type. Sometimes a device lacks an attribute, or a device is missing.
func addCorpusNode(t *rapid.T, f *fleet, hardware corpus.Hardware) {
	byDriver := map[string][]resourceapi.Device{}
	for _, d := range hardware.Devices() {
		if oneIn(t, 30, "left out") {
			continue
		}
		if len(d.Attributes) > 0 && oneIn(t, 60, "without an attribute") {
			delete(d.Attributes, rapid.SampledFrom(slices.Sorted(maps.Keys(d.Attributes))).Draw(t, "attribute"))
		}
		byDriver[d.Driver] = append(byDriver[d.Driver], d.Device)
	}
	var published []*sliceBuilder
	for i, driver := range hardware.Drivers() {
		published = append(published, slice(fmt.Sprint(i), byDriver[driver]...).Driver(driver))
	}
	node := f.addNode(published...)
	// Leave few nodes idle, because an exhaustive search takes long on idle nodes.
	inUse := rapid.SampledFrom([]int{0, 2, 3, 3, 4, 5}).Draw(t, "in use, of eight")
	for cycle := range f.cycles {
		for _, s := range published {
			for _, d := range s.Spec.Devices {
				if rapid.IntRange(0, 7).Draw(t, "in use") < inUse {
					f.take(cycle, s.Spec.Driver, node, d.Name)
				}
			}
		}
	}
}

// corpusClaim requests the devices that main was written for, or a few more or less. It may have a second expression.
func corpusClaim(t *rapid.T, main corpus.Expression, all []corpus.Expression) *claimBuilder {
	c := claim("c")
	for i, r := range main.Requests {
		count := r.Count
		if oneIn(t, 4, "another count") {
			count = rapid.IntRange(1, 4).Draw(t, "count")
		}
		c.Want(fmt.Sprint("c-", i), int64(count)).Class(r.Driver)
	}
	c.Define("main", main.Text).Cel("main")
	if oneIn(t, 4, "another expression") {
		var others []corpus.Expression
		for _, e := range all {
			if e.Hardware.Name == main.Hardware.Name {
				others = append(others, e)
			}
		}
		c.Define("other", rapid.SampledFrom(others).Draw(t, "other").Text).Cel("other")
	}
	return c
}
