// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

const hosts = "tpu.example.com"

// expressions read labels and attributes of nodes. The attributes x and y may be missing.
var expressions = []string{
	"nodes.all(n, n.labels.rack == nodes[0].labels.rack)",
	"nodes.map(n, n.labels.rack).distinct().size() <= 2",
	"nodes.map(n, n.labels.rack).distinct().size() == nodes.size()",
	"nodes.all(n, nodes.filter(o, o.labels.rack == n.labels.rack).size() == 2)",
	"nodes.all(n, has(n.labels.leaf)) && nodes.map(n, n.labels.leaf).distinct().size() == 1",
	"nodes.segments(2, n, n.labels.rack)",
	"nodes.segments(3, n, [n.attributes['tpu.example.com'].x / 2, n.attributes['tpu.example.com'].y / 2])",
	"nodes.filter(n, has(n.labels.leaf)).segments(2, n, n.labels.leaf)",
	"nodes.box(n, [n.attributes['tpu.example.com'].x, n.attributes['tpu.example.com'].y], [2, 2], [4, 4])",
	"nodes.path(a, b, a.attributes['tpu.example.com'].x - b.attributes['tpu.example.com'].x in [1, -1])",
	"nodes.all(n, nodes.exists(o, o != n && o.attributes['tpu.example.com'].y == n.attributes['tpu.example.com'].y))",
	"nodes.exists(n, n.attributes['tpu.example.com'].x == 0) && nodes.all(n, n.attributes['tpu.example.com'].y < 3)",
	"nodes.map(n, n.attributes['tpu.example.com'].x).sum() % 3 == 0",
	"nodes.all(n, n.capacity['tpu.example.com'].memory.isGreaterThan(quantity('1')))",
	"nodes.exists_one(n, n.labels.exists(k, k == 'leaf'))",
	"nodes.all(n, n.?labels[?'leaf'].orValue('') == 'l')",
	"nodes.all(n, !n.?labels[?'leaf'].hasValue())",
	"nodes.all(n, n.?capacity[?'tpu.example.com'].?memory.orValue(quantity('0')).isGreaterThan(quantity('0')))",
	"nodes.all(n, n.labels.?leaf.orValue('m') == 'm')",
}

var preferences = []string{
	"nodes.map(n, n.labels.rack).distinct().size()",
	"0 - nodes.map(n, n.labels.rack).distinct().size()",
	"nodes.map(n, n.attributes['tpu.example.com'].x).sum()",
	"nodes.filter(n, has(n.labels.leaf)).size()",
	"(nodes.segments(2, n, n.labels.rack) ? 2 : 0) + nodes.map(n, n.labels.rack).distinct().size()",
}

// problem is a random group of pods with nodes. It implements nodeset.Hosts: a pod of each kind needs some amount of the node's
// only resource, and a node may refuse pods of the first two kinds together.
type problem struct {
	group nodeset.Group
	nodes []nodeset.Node
	// needs holds the amount that a pod of each kind needs. has holds the amount that each node has.
	needs, has []int
	// apart is indexed by node. An entry is true if the node refuses pods of the first two kinds together.
	apart []bool
}

func (p *problem) Refusal(_ context.Context, node int, load nodeset.Load) (string, error) {
	sum := 0
	for kind, n := range load {
		if n > 0 && !p.nodes[node].Takes[kind] {
			return "kind", nil
		}
		sum += n * p.needs[kind]
	}
	if sum > p.has[node] || p.apart[node] && len(load) > 1 && load[0] > 0 && load[1] > 0 {
		return "room", nil
	}
	return "", nil
}

func (p *problem) Each(_ context.Context, n int, do func(int)) {
	for i := range n {
		do(i)
	}
}

func (p *problem) Compete() bool { return false }

func (p *problem) Together(context.Context, []nodeset.Member) (bool, error) { return true, nil }

func draw(t *rapid.T, maxNodes, maxPerNode int, prefers bool) *problem {
	var p problem
	n, kinds, perNode := rapid.IntRange(1, maxNodes).Draw(t, "nodes"), rapid.IntRange(1, 3).Draw(t, "kinds"), rapid.IntRange(1, maxPerNode).Draw(t, "podsPerNode")
	for range kinds {
		p.needs = append(p.needs, rapid.IntRange(1, 3).Draw(t, "needs"))
	}
	// With a preference, give nodes all attributes. Otherwise it may fail on a set that only one search tries.
	all := prefers || rapid.Bool().Draw(t, "all attributes")
	for i := range n {
		node := nodeset.Node{Name: fmt.Sprintf("n%02d", i), Labels: map[string]string{"rack": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "rack")}}
		if rapid.Bool().Draw(t, "leaf") {
			node.Labels["leaf"] = rapid.SampledFrom([]string{"l", "m"}).Draw(t, "of")
		}
		x, y := int64(rapid.IntRange(0, 3).Draw(t, "x")), int64(rapid.IntRange(0, 3).Draw(t, "y"))
		if all || rapid.IntRange(0, 9).Draw(t, "has") > 0 {
			node.Slices = append(node.Slices, slice(hosts, 2, map[resourceapi.QualifiedName]int64{"x": x, "y": y}))
		}
		node.Placed, node.Free = rapid.IntRange(0, 7).Draw(t, "placed") == 0, perNode
		if node.Placed {
			node.Free -= rapid.IntRange(1, perNode).Draw(t, "running")
		}
		p.has = append(p.has, rapid.IntRange(1, 6).Draw(t, "has"))
		p.apart = append(p.apart, rapid.IntRange(0, 3).Draw(t, "apart") == 0)
		for kind := range kinds {
			node.Takes = append(node.Takes, rapid.IntRange(0, 4).Draw(t, "takes") > 0 && p.needs[kind] <= p.has[i])
		}
		p.nodes = append(p.nodes, node)
	}
	pods := 0
	for range kinds {
		count := min(rapid.IntRange(0, 3).Draw(t, "count"), 5-pods)
		p.group.Kinds = append(p.group.Kinds, count)
		pods += count
	}
	if pods == 0 {
		p.group.Kinds[0], pods = 1, 1
	}
	p.group.Least = rapid.IntRange(1, pods).Draw(t, "least")
	p.group.Namespace, p.group.Name = "default", "g"
	p.group.Constraint = &v1alpha1.NodeSetConstraint{Name: "set", Expression: rapid.SampledFrom(expressions).Draw(t, "expression"), PodsPerNode: perNode}
	if prefers {
		p.group.Constraint.Preference = rapid.SampledFrom(preferences).Draw(t, "preference")
	}
	return &p
}

func slice(driver string, devices int, attributes map[resourceapi.QualifiedName]int64) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: driver, Pool: resourceapi.ResourcePool{Name: "p", ResourceSliceCount: 1}}}
	for i := range devices {
		d := resourceapi.Device{Name: fmt.Sprintf("d%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: ptr.To(int64(i))}}}
		d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: *resource.NewQuantity(attributes["x"], resource.DecimalSI)}}
		for name, value := range attributes {
			d.Attributes[name] = resourceapi.DeviceAttribute{IntValue: &value}
		}
		s.Spec.Devices = append(s.Spec.Devices, d)
	}
	return s
}

// brute tries all sets in order with all assignments of the pods. It returns the first set or, with a preference, the best.
func (p *problem) brute(t require.TestingT, e *device.Environment) (best []int, pods int, failed bool) {
	devices := make([]*device.Device, len(p.nodes))
	for i, n := range p.nodes {
		d := &resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}}
		for key, value := range n.Labels {
			d.Attributes[device.NodeLabel(key)] = resourceapi.DeviceAttribute{StringValue: &value}
		}
		for _, s := range n.Slices {
			d.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{}
			for name, value := range s.Spec.Devices[0].Attributes {
				d.Attributes[hosts+"/"+name] = value
			}
			for name, value := range s.Spec.Devices[0].Capacity {
				d.Capacity[hosts+"/"+name] = value
			}
		}
		devices[i] = device.New(device.NodeDriver, d)
	}
	expression, err := e.Compile(context.Background(), p.group.Constraint.Expression)
	require.NoError(t, err)
	var preference *device.Expression
	if text := p.group.Constraint.Preference; text != "" {
		preference, err = e.CompileInt(context.Background(), text)
		require.NoError(t, err)
	}
	all := 0
	for _, n := range p.group.Kinds {
		all += n
	}
	for _, count := range []int{all, p.group.Least} {
		var value int64
		for set := range p.sets(count) {
			if !p.isAssignable(set, count) {
				continue
			}
			of := make([]*device.Device, len(set))
			for i, at := range set {
				of[i] = devices[at]
			}
			ok, err := expression.Satisfied(context.Background(), of, cel.NewBudget(1<<30))
			if err != nil {
				return nil, 0, true
			}
			if !ok {
				continue
			}
			if preference == nil {
				return set, count, false
			}
			v, err := preference.Value(context.Background(), of, cel.NewBudget(1<<30))
			if err != nil {
				return nil, 0, true
			}
			if best == nil || v > value {
				best, value = set, v
			}
		}
		if best != nil {
			return best, count, false
		}
	}
	return nil, 0, false
}

// sets yields sets for count pods, smaller ones first: all nodes that run pods of the group, plus up to count others.
func (p *problem) sets(count int) iter.Seq[[]int] {
	var placed, others []int
	for i, n := range p.nodes {
		if n.Placed {
			placed = append(placed, i)
		} else {
			others = append(others, i)
		}
	}
	return func(yield func([]int) bool) {
		for size := range count + 1 {
			var visit func(from int, set []int) bool
			visit = func(from int, set []int) bool {
				if len(set) == len(placed)+size {
					return len(set) == 0 || yield(slices.Clone(set))
				}
				for i := from; i < len(others); i++ {
					if !visit(i+1, append(set, others[i])) {
						return false
					}
				}
				return true
			}
			if !visit(0, slices.Clone(placed)) {
				return
			}
		}
	}
}

// isAssignable reports whether count pods can be assigned to the set. It tries each pod on each node.
func (p *problem) isAssignable(set []int, count int) bool {
	loads := make([]nodeset.Load, len(p.nodes))
	for i := range loads {
		loads[i] = make(nodeset.Load, len(p.group.Kinds))
	}
	var pods []int
	for kind, n := range p.group.Kinds {
		for range n {
			pods = append(pods, kind)
		}
	}
	var place func(pod, left int) bool
	place = func(pod, left int) bool {
		if left == 0 {
			return p.isComplete(set, loads)
		}
		if len(pods)-pod < left {
			return false
		}
		for _, i := range set {
			if loads[i].Pods() < p.nodes[i].Free {
				loads[i][pods[pod]]++
				if place(pod+1, left-1) {
					return true
				}
				loads[i][pods[pod]]--
			}
		}
		return place(pod+1, left)
	}
	return place(0, count)
}

// isComplete reports whether each node of the set has a pod and can take its load.
func (p *problem) isComplete(set []int, loads []nodeset.Load) bool {
	for _, i := range set {
		if loads[i].Pods() == 0 && !p.nodes[i].Placed {
			return false
		}
		if refusal, _ := p.Refusal(context.Background(), i, loads[i]); refusal != "" {
			return false
		}
	}
	return true
}

func (p *problem) search(c *nodeset.Chooser) *nodeset.Search {
	return &nodeset.Search{Chooser: c, Group: &p.group, Nodes: p.nodes, Hosts: p, Compiled: compiler(c)}
}

func compiler(c *nodeset.Chooser) nodeset.Compiler {
	return func(ctx context.Context, problem *nodeset.Problem) (*allocator.PreparedClaim, error) {
		return c.Prepare(ctx, problem.Claim, nodeset.Classes{}, true)
	}
}

func (p *problem) choose(t require.TestingT, c *nodeset.Chooser) (set []int, pods int, failed bool) {
	choice, err := p.search(c).Choose(context.Background())
	if err != nil {
		return nil, 0, true
	}
	if choice == nil {
		return nil, 0, false
	}
	loads, kinds := make([]nodeset.Load, len(p.nodes)), make([]int, len(p.group.Kinds))
	var placed []int
	for _, m := range choice.Members {
		loads[m.Node] = m.Load
		require.LessOrEqual(t, m.Load.Pods(), p.nodes[m.Node].Free)
		for kind, n := range m.Load {
			kinds[kind] += n
		}
		if p.nodes[m.Node].Placed {
			placed = append(placed, m.Node)
		} else {
			set = append(set, m.Node)
		}
	}
	set = append(placed, set...)
	require.True(t, p.isComplete(set, loads), "%v", choice.Members)
	require.Equal(t, kinds, choice.Kinds)
	for kind, n := range kinds {
		require.LessOrEqual(t, n, p.group.Kinds[kind])
	}
	return set, choice.Pods, false
}

func requireSame(t *testing.T, maxNodes, maxPerNode int, prefers bool) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	found, none, failures := 0, 0, 0
	cases.Check(t, func(t *rapid.T) {
		p := draw(t, maxNodes, maxPerNode, prefers)
		want, wantPods, wantFailed := p.brute(t, chooser.Environment())
		got, pods, failed := p.choose(t, chooser)
		require.Equal(t, wantFailed, failed, "%+v", p.group.Constraint)
		if !failed {
			require.Equal(t, want, got, "%+v", p.group.Constraint)
			require.Equal(t, wantPods, pods)
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

// TestSameAsExhaustive compares the search with an enumeration of all sets, with one pod on each node.
func TestSameAsExhaustive(t *testing.T) { requireSame(t, 12, 1, false) }

// TestAssignments compares the search with an enumeration of all sets and all assignments of up to three pods to a node.
func TestAssignments(t *testing.T) { requireSame(t, 7, 3, false) }

// TestBestOfAll compares the best set of the search with the best set of an enumeration.
func TestBestOfAll(t *testing.T) { requireSame(t, 7, 3, true) }

// The search finds each box in a torus without backtracking. The test checks the number of steps.
func TestBoxesOfManyNodes(t *testing.T) {
	for _, of := range []struct{ width, one, other int }{{32, 2, 4}, {32, 4, 2}, {32, 4, 4}, {32, 1, 8}, {32, 4, 8}, {70, 4, 4}, {70, 2, 8}} {
		t.Run(fmt.Sprintf("%dx%d of %dx%d", of.one, of.other, of.width, of.width), func(t *testing.T) {
			group := &nodeset.Group{Kinds: []int{of.one * of.other}, Constraint: &v1alpha1.NodeSetConstraint{
				Name: "box", Expression: fmt.Sprintf("nodes.box(n, [int(n.labels.x), int(n.labels.y)], [%d, %d], [%d, %d])", of.one, of.other, of.width, of.width),
			}}
			var nodes []nodeset.Node
			for i := range of.width * of.width {
				nodes = append(nodes, nodeset.Node{
					Name: fmt.Sprintf("n%04d", i), Labels: map[string]string{"x": fmt.Sprint(i % of.width), "y": fmt.Sprint(i / of.width)}, Takes: []bool{i%of.width > 2},
				})
			}
			chooser, err := nodeset.NewChooser(nil)
			require.NoError(t, err)
			search := &nodeset.Search{Chooser: chooser, Group: group, Nodes: nodes, Compiled: compiler(chooser)}
			search.Options = []allocator.Option{allocator.WithStepBudget(int64(2 * of.one * of.other))}
			choice, err := search.Choose(t.Context())
			require.NoError(t, err)
			require.NotNil(t, choice)
		})
	}
}
