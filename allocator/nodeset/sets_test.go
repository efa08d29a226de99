// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

const rails = "n.devices.filter(d, d.driver == 'nic.example.com').map(d, d.attributes['nic.example.com'].rail)"

const railsOfFirst = "nodes[0].devices.filter(d, d.driver == 'nic.example.com').map(d, d.attributes['nic.example.com'].rail)"

// ofDevices lists expressions that read the devices of pods.
var ofDevices = []string{
	"nodes.all(n, " + rails + " == " + railsOfFirst + ")",
	"nodes.map(n, " + rails + ".map(r, string(r)).join(',')).distinct().size() == 1",
	"nodes.all(n, n.devices.all(d, d.attributes['nic.example.com'].rail > 0))",
	"nodes.map(n, " + rails + ").flatten().distinct().size() == nodes.map(n, n.devices.filter(d, d.driver == 'nic.example.com').size()).sum()",
	"nodes.all(n, n.devices.exists(d, d.driver == 'gpu.example.com' && d.attributes['gpu.example.com'].rail == 1))",
	"nodes.all(n, n.devices.all(d, has(d.attributes['nic.example.com'].rail) || d.driver != 'nic.example.com')) && nodes.all(n, n.labels.rack == nodes[0].labels.rack)",
	"nodes.all(n, nodes.all(m, n.devices.all(d, m.devices.exists(e, e.driver == d.driver && e.attributes[e.driver].rail == d.attributes[d.driver].rail))))",
	"nodes.map(n, n.devices.map(d, d.attributes[d.driver].rail).sum()).sum() == 3",
	"nodes.all(n, nodes.exists(m, n != m && n.devices.size() == m.devices.size()))",
	"nodes.map(n, n.devices.size()).distinct().size() == 2",
	"nodes.clique(a, b, a.devices.all(d, b.devices.exists(e, e.driver == d.driver)))",
	"nodes.filter(n, n.devices.exists(d, d.attributes[d.driver].rail == 1)).size() >= 2",
	"nodes.map(n, n.devices).flatten().distinct().size() == 3",
	"nodes[0].devices.size() < nodes[nodes.size() - 1].devices.size()",
	"nodes.map(n, n.?devices.orValue([]).size()).sum() == 2 && nodes.all(n, has(n.devices))",
	"nodes.all(n, n.devices.all(d, nodes.all(m, m.devices.all(e, e == d || e.driver != d.driver || e.attributes[d.driver].rail != d.attributes[d.driver].rail))))",
	"nodes.exists_one(n, n.devices.exists(d, d.driver == 'gpu.example.com'))",
	"nodes.all(n, sets.equivalent(" + rails + ", " + railsOfFirst + "))",
	"nodes.all(n, nodes.all(m, n == m || !sets.intersects(" + rails + ", m.devices.filter(d, d.driver == 'nic.example.com').map(d, d.attributes['nic.example.com'].rail))))",
	"nodes.map(n, " + rails + ").distinct().size() == 1",
	"nodes.exists(n, nodes.all(m, sets.contains(" + rails + ", m.devices.map(d, d.attributes[d.driver].rail))))",
	"nodes.all(n, n.labels.size() == 1) && nodes.all(n, dyn(n)['devices'].size() == 1)",
}

type classes struct{}

func (classes) Get(name string) (*resourceapi.DeviceClass, error) {
	class := &resourceapi.DeviceClass{}
	class.Name = name
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + name + "'"}}}
	return class, nil
}

func (classes) List() ([]*resourceapi.DeviceClass, error) { return nil, nil }

// pod describes the requests of the pods of one kind.
type pod struct {
	gpus, nics int
	matches    bool
}

func (p pod) claim() *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{}
	claim.Name, claim.UID = fmt.Sprint(p), "claim"
	for class, count := range map[string]int{"gpu.example.com": p.gpus, "nic.example.com": p.nics} {
		if count > 0 {
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{Name: class[:3], Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(count),
			}})
		}
	}
	slices.SortFunc(claim.Spec.Devices.Requests, func(a, b resourceapi.DeviceRequest) int { return int(a.Name[0]) - int(b.Name[0]) })
	if p.matches && p.nics > 0 {
		name := resourceapi.FullyQualifiedName("nic.example.com/plane")
		claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{Requests: []string{"nic"}, MatchAttribute: &name}}
	}
	return claim
}

// host is a node with its GPUs and its network interfaces. It also has the interfaces that all nodes can reach.
type host struct {
	node *v1.Node
	gpus []resourceapi.Device
	nics []resourceapi.Device
}

func drawDevices(t *rapid.T, kind string, count int, prefix string) (devices []resourceapi.Device) {
	for i := range count {
		d := resourceapi.Device{Name: fmt.Sprintf("%s%d", prefix, i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"serial": {StringValue: ptr.To(fmt.Sprint(prefix, i))},
			"plane":  {IntValue: ptr.To(int64(rapid.IntRange(0, 1).Draw(t, "plane")))},
		}}
		if rapid.IntRange(0, 15).Draw(t, "has rail") > 0 {
			d.Attributes["rail"] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(rapid.IntRange(0, 2).Draw(t, kind)))}
		}
		devices = append(devices, d)
	}
	return devices
}

// devicesCase is a random problem with expressions that read devices.
type devicesCase struct {
	group  nodeset.Group
	pods   []pod
	hosts  []host
	remote []resourceapi.Device
	// placed is true if a pod of the group already runs on the first node and has the first device of each driver there.
	placed bool
}

func (c devicesCase) ofPlaced() (devices []allocator.AllocatedDevice) {
	h := c.hosts[0]
	add := func(driver string, of []resourceapi.Device) {
		if len(of) > 0 {
			devices = append(devices, allocator.AllocatedDevice{Device: &of[0], Slice: &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &h.node.Name, Pool: resourceapi.ResourcePool{Name: h.node.Name}}}})
		}
	}
	add("gpu.example.com", h.gpus)
	add("nic.example.com", h.nics)
	return devices
}

func drawDevicesCase(t *rapid.T) devicesCase {
	c := devicesCase{group: nodeset.Group{Namespace: "default", Name: "g"}}
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		n := &v1.Node{}
		n.Name, n.Labels = fmt.Sprintf("n%d", i), map[string]string{"rack": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "rack")}
		gpus := rapid.IntRange(0, 3).Draw(t, "gpus")
		c.hosts = append(c.hosts, host{n, drawDevices(t, "gpu", gpus, "g"), drawDevices(t, "nic", rapid.IntRange(0, 6-gpus).Draw(t, "nics"), "n")})
	}
	if rapid.IntRange(0, 2).Draw(t, "has remote") == 0 {
		c.remote = drawDevices(t, "nic", 2, "r")
	}
	for range rapid.IntRange(1, 2).Draw(t, "kinds") {
		c.pods = append(c.pods, pod{rapid.IntRange(0, 1).Draw(t, "wanted gpus"), rapid.IntRange(0, 3).Draw(t, "wanted nics"), rapid.Bool().Draw(t, "matches")})
		c.group.Kinds = append(c.group.Kinds, rapid.IntRange(0, 2).Draw(t, "count"))
	}
	c.group.Kinds[0] = max(1, c.group.Kinds[0])
	c.placed = len(c.hosts) > 1 && rapid.IntRange(0, 3).Draw(t, "placed") == 0
	c.group.Constraint = &v1alpha1.NodeSetConstraint{Name: "set", Expression: rapid.SampledFrom(ofDevices).Draw(t, "expression"), PodsPerNode: 1}
	if rapid.Bool().Draw(t, "prefers") {
		c.group.Constraint.Preference = "nodes.map(n, n.devices.filter(d, d.driver == 'nic.example.com' && d.attributes['nic.example.com'].?rail.orValue(0) == 2).size()).sum()"
	}
	return c
}

func (c devicesCase) slices() (all []*resourceapi.ResourceSlice) {
	add := func(driver, pool string, node *string, devices []resourceapi.Device) {
		s := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, Pool: resourceapi.ResourcePool{Name: pool, ResourceSliceCount: 1}, NodeName: node, Devices: devices,
		}}
		if s.Name = driver + pool; node == nil {
			s.Spec.AllNodes = ptr.To(true)
		}
		all = append(all, s)
	}
	for i := range c.hosts {
		h := &c.hosts[i]
		add("gpu.example.com", h.node.Name, &h.node.Name, h.gpus)
		add("nic.example.com", h.node.Name, &h.node.Name, h.nics)
	}
	if len(c.remote) > 0 {
		add("nic.example.com", "remote", nil, c.remote)
	}
	return all
}

// got is the node of a pod and the names of its devices.
type got struct {
	node    int
	devices string
}

// choose lists the sets of each node with the allocator, and returns the choice of the search.
func (c devicesCase) choose(t require.TestingT, chooser *nodeset.Chooser) (chosen []got, failed bool) {
	problem, err := nodeset.NewProblem(&c.group, 0, 1)
	require.NoError(t, err)
	prepared, err := chooser.Prepare(context.Background(), problem.Claim, nodeset.Classes{}, true)
	require.NoError(t, err)
	reading := nodeset.ReadingOf(prepared)
	require.True(t, reading.Devices(), c.group.Constraint.Expression)
	c.group.ReadsDevices = true
	a, err := allocator.NewAllocator(context.Background(), structured.Features{}, structured.AllocatedState{}, classes{}, c.slices(), dracel.NewCache(10, dracel.Features{}), allocator.WithReasons())
	require.NoError(t, err)
	nodes := make([]nodeset.Node, len(c.hosts))
	names := make([][][]string, len(c.hosts))
	for i, h := range c.hosts {
		nodes[i] = nodeset.Node{Name: h.node.Name, Labels: h.node.Labels, Takes: make([]bool, len(c.pods)), Sets: make([][]nodeset.Set, len(c.pods))}
		names[i] = make([][]string, len(c.pods))
		if c.placed && i == 0 {
			nodes[i].Placed = true
			nodes[i].Has, err = reading.SetOf(c.ofPlaced(), nil)
			require.NoError(t, err)
			continue
		}
		for kind, p := range c.pods {
			sets, err := reading.SetsOn(context.Background(), a, h.node, []*resourceapi.ResourceClaim{p.claim()}, nil)
			if err != nil {
				require.ErrorIs(t, err, structured.ErrFailedAllocationOnNode)
			}
			nodes[i].Takes[kind], nodes[i].Sets[kind] = len(sets) > 0, sets
			for _, set := range sets {
				text := ""
				for _, result := range set.Results[0].Devices.Results {
					text += result.Device + " "
				}
				names[i][kind] = append(names[i][kind], text)
			}
		}
	}
	search := &nodeset.Search{Chooser: chooser, Group: &c.group, Nodes: nodes, Compiled: compiler(chooser), Options: []allocator.Option{allocator.WithPreferenceBudget(1<<40, 1<<40)}}
	choice, err := search.Choose(context.Background())
	if err != nil {
		return nil, true
	}
	if choice == nil {
		return nil, false
	}
	for kind := range choice.Kinds {
		for _, m := range choice.Members {
			if m.Load[kind] > 0 {
				chosen = append(chosen, got{m.Node, names[m.Node][kind][m.Set]})
			}
		}
	}
	return chosen, false
}

// sets returns the sets that a pod can get on a node, in the order of the search. A request takes devices in ascending order.
func (c devicesCase) sets(h host, p pod) (sets [][]allocator.AllocatedDevice) {
	nics := slices.Clone(h.nics)
	local := len(nics)
	nics = append(nics, c.remote...)
	var visit func(from, left int, of []resourceapi.Device, driver string, set []allocator.AllocatedDevice, next func([]allocator.AllocatedDevice))
	visit = func(from, left int, of []resourceapi.Device, driver string, set []allocator.AllocatedDevice, next func([]allocator.AllocatedDevice)) {
		if left == 0 {
			next(set)
			return
		}
		for i := from; i < len(of); i++ {
			slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: driver, Pool: resourceapi.ResourcePool{Name: "remote"}}}
			if driver == "gpu.example.com" || i < local {
				slice.Spec.NodeName, slice.Spec.Pool.Name = &h.node.Name, h.node.Name
			}
			visit(i+1, left-1, of, driver, append(slices.Clone(set), allocator.AllocatedDevice{Device: &of[i], Slice: slice}), next)
		}
	}
	visit(0, p.gpus, h.gpus, "gpu.example.com", nil, func(gpus []allocator.AllocatedDevice) {
		visit(0, p.nics, nics, "nic.example.com", gpus, func(all []allocator.AllocatedDevice) {
			chosen := all[len(gpus):]
			for _, d := range chosen {
				if p.matches && *d.Attributes["plane"].IntValue != *chosen[0].Attributes["plane"].IntValue {
					return
				}
			}
			sets = append(sets, all)
		})
	})
	return sets
}

// brute tries all sets of nodes and all sets of devices on them. It returns the first set or, with a preference, the best set.
func (c devicesCase) brute(t require.TestingT, e *device.Environment) (best []got, failed bool) {
	expression, err := e.Compile(context.Background(), c.group.Constraint.Expression)
	require.NoError(t, err)
	var preference *device.Expression
	if text := c.group.Constraint.Preference; text != "" {
		preference, err = e.CompileInt(context.Background(), text)
		require.NoError(t, err)
	}
	var value int64
	type member struct {
		got
		value  *device.Device
		shared []string
	}
	members := make([][]member, len(c.pods)+1)
	for kind, p := range append(slices.Clone(c.pods), pod{}) {
		for i, h := range c.hosts {
			all := c.sets(h, p)
			if kind == len(c.pods) {
				if all = nil; c.placed && i == 0 {
					all = [][]allocator.AllocatedDevice{c.ofPlaced()}
				}
			} else if c.placed && i == 0 {
				continue
			}
			for _, set := range all {
				m := member{got: got{node: i}}
				var of []device.OfDriver
				for _, d := range set {
					m.devices += d.Name + " "
					attributes := map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}
					if rail, has := d.Attributes["rail"]; has {
						attributes[resourceapi.QualifiedName(d.Slice.Spec.Driver+"/rail")] = rail
					}
					of = append(of, device.OfDriver{Driver: d.Slice.Spec.Driver, Device: resourceapi.Device{Attributes: attributes}})
					if d.Slice.Spec.NodeName == nil {
						m.shared = append(m.shared, d.Name)
					}
				}
				attribute, err := device.NodeDevicesOf(of)
				require.NoError(t, err)
				m.value = device.New(device.NodeDriver, &resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
					device.NodeDevices: attribute, device.NodeLabel("rack"): {StringValue: ptr.To(h.node.Labels["rack"])},
				}})
				members[kind] = append(members[kind], m)
			}
		}
	}
	var visit func(kind, from, left int, set []member) bool
	visit = func(kind, from, left int, set []member) (more bool) {
		for left == 0 {
			kind++
			if kind == len(c.pods) {
				of, names := make([]*device.Device, len(set)), []got{}
				for i, m := range set {
					if of[i] = m.value; !c.placed || i > 0 {
						names = append(names, m.got)
					}
				}
				ok, err := expression.Satisfied(context.Background(), of, cel.NewBudget(1<<30))
				if err != nil {
					failed = true
					return false
				}
				if !ok {
					return true
				}
				if preference == nil {
					best = names
					return false
				}
				v, err := preference.Value(context.Background(), of, cel.NewBudget(1<<30))
				if err != nil {
					failed = true
					return false
				}
				if best == nil || v > value {
					best, value = names, v
				}
				return true
			}
			from, left = 0, c.group.Kinds[kind]
		}
		for i := from; i < len(members[kind]); i++ {
			m := members[kind][i]
			if slices.ContainsFunc(set, func(other member) bool {
				return other.node == m.node || slices.ContainsFunc(other.shared, func(name string) bool { return slices.Contains(m.shared, name) })
			}) {
				continue
			}
			if !visit(kind, i+1, left-1, append(slices.Clone(set), m)) {
				return false
			}
		}
		return true
	}
	visit(-1, 0, 0, members[len(c.pods)])
	return best, failed
}

// TestDevicesSameAsExhaustive compares the search with an enumeration of all sets of nodes and all sets of devices on them.
func TestDevicesSameAsExhaustive(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	found, none, failures := 0, 0, 0
	cases.Check(t, func(t *rapid.T) {
		c := drawDevicesCase(t)
		want, wantFailed := c.brute(t, chooser.Environment())
		if wantFailed && c.group.Constraint.Preference != "" {
			// The expression fails on a set that brute tries and the search may skip, because the set can't be better.
			return
		}
		chosen, failed := c.choose(t, chooser)
		require.Equal(t, wantFailed, failed, "%+v", c.group.Constraint)
		if !failed {
			require.Equal(t, want, chosen, "%+v", c.group.Constraint)
		}
		switch {
		case failed:
			failures++
		case want == nil:
			none++
		default:
			found++
		}
	})
	t.Logf("%d sets, %d times none, %d failures", found, none, failures)
	require.Positive(t, found)
	require.Positive(t, none)
}

// Devices on two nodes consume the same counter of their pool. The counter suffices for only one device.
func TestCountersOfSeveralNodes(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	lanes := func(n string) map[string]resourceapi.Counter {
		return map[string]resourceapi.Counter{"lanes": {Value: resource.MustParse(n)}}
	}
	spec := resourceapi.ResourceSliceSpec{Driver: "gpu.example.com", PerDeviceNodeSelection: ptr.To(true), Pool: resourceapi.ResourcePool{Name: "chassis", ResourceSliceCount: 2}}
	counters := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: spec.Driver, Pool: spec.Pool, AllNodes: ptr.To(true), SharedCounters: []resourceapi.CounterSet{{Name: "link", Counters: lanes("1")}}}}
	counters.Name = "counters"
	for _, name := range []string{"n0", "n1"} {
		spec.Devices = append(spec.Devices, resourceapi.Device{Name: "on-" + name, NodeName: &name, ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: "link", Counters: lanes("1")}}})
	}
	a, err := allocator.NewAllocator(t.Context(), structured.Features{PartitionableDevices: true}, structured.AllocatedState{}, classes{},
		[]*resourceapi.ResourceSlice{counters, {Spec: spec}}, dracel.NewCache(10, dracel.Features{}), allocator.WithReasons())
	require.NoError(t, err)
	group := &nodeset.Group{Kinds: []int{1}, ReadsDevices: true, Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: "nodes.all(n, n.devices.size() == 1)"}}
	for count, fits := range map[int]bool{1: true, 2: false} {
		group.Kinds[0] = count
		problem, err := nodeset.NewProblem(group, 0, count)
		require.NoError(t, err)
		prepared, err := chooser.Prepare(t.Context(), problem.Claim, nodeset.Classes{}, true)
		require.NoError(t, err)
		var nodes []nodeset.Node
		for _, name := range []string{"n0", "n1"} {
			node := &v1.Node{}
			node.Name = name
			sets, err := nodeset.ReadingOf(prepared).SetsOn(t.Context(), a, node, []*resourceapi.ResourceClaim{pod{gpus: 1}.claim()}, nil)
			require.NoError(t, err)
			require.Len(t, sets, 1)
			nodes = append(nodes, nodeset.Node{Name: name, Takes: []bool{true}, Sets: [][]nodeset.Set{sets}})
		}
		choice, err := (&nodeset.Search{Chooser: chooser, Group: group, Nodes: nodes, Compiled: compiler(chooser)}).Choose(t.Context())
		require.NoError(t, err)
		require.Equal(t, fits, choice != nil)
	}
}

// The number of sets that are listed for a pod on a node is limited. A node with more sets can't take the pod.
func TestSetsAreLimited(t *testing.T) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	rail := func(i int) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
		return map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"rail": {IntValue: ptr.To(int64(i))}}
	}
	for name, test := range map[string]struct {
		expression string
		nics       int
		// differ is true if each device has a different rail. tainted devices are not symmetric.
		differ, tainted bool
		claims          []pod
		want            string
	}{
		"sets":        {expression: ofDevices[0], nics: 12, differ: true, claims: []pod{{nics: 6}}, want: "the pod can get more than 256 sets of devices that differ for the expression"},
		"allocations": {expression: ofDevices[0], nics: 18, tainted: true, claims: []pod{{nics: 9}}, want: "or more than 16384 sets in total"},
		"devices":     {expression: ofDevices[0], nics: 70, claims: []pod{{nics: 30}, {nics: 30}, {nics: 5}}, want: "the pod gets 65 devices, the limit for n.devices is 64"},
		"none":        {expression: ofDevices[9], nics: 70, differ: true, claims: []pod{{nics: 30}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := devicesCase{group: nodeset.Group{Kinds: []int{1}, Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: test.expression}}}
			h := host{node: &v1.Node{}}
			h.node.Name = "n0"
			for i := range test.nics {
				d := resourceapi.Device{Name: fmt.Sprintf("d%02d", i), Attributes: rail(0)}
				if test.differ {
					d.Attributes = rail(i)
				}
				if test.tainted {
					d.Taints = []resourceapi.DeviceTaint{{Key: "example.com/watched", Effect: resourceapi.DeviceTaintEffectNone}}
				}
				h.nics = append(h.nics, d)
			}
			c.hosts = []host{h}
			problem, err := nodeset.NewProblem(&c.group, 0, 1)
			require.NoError(t, err)
			prepared, err := chooser.Prepare(t.Context(), problem.Claim, nodeset.Classes{}, true)
			require.NoError(t, err)
			a, err := allocator.NewAllocator(t.Context(), structured.Features{}, structured.AllocatedState{}, classes{}, c.slices(), dracel.NewCache(10, dracel.Features{}), allocator.WithReasons())
			require.NoError(t, err)
			var claims []*resourceapi.ResourceClaim
			for i, p := range test.claims {
				claims = append(claims, p.claim())
				claims[i].Name = fmt.Sprint(i)
			}
			sets, err := nodeset.ReadingOf(prepared).SetsOn(t.Context(), a, h.node, claims, nil)
			if test.want == "" {
				require.NoError(t, err)
				require.Len(t, sets, 1)
				return
			}
			require.ErrorContains(t, err, test.want)
			require.ErrorIs(t, err, structured.ErrFailedAllocationOnNode)
			require.Empty(t, sets)
		})
	}
}
