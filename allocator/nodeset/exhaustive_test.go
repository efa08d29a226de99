// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"context"
	"fmt"
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

// expressions are over labels and attributes of nodes. x and y may be absent.
var expressions = []string{
	"nodes.all(n, n.labels.rack == nodes[0].labels.rack)",
	"nodes.map(n, n.labels.rack).distinct().size() <= 2",
	"nodes.map(n, n.labels.rack).distinct().size() == nodes.size()",
	"nodes.all(n, nodes.filter(o, o.labels.rack == n.labels.rack).size() == 2)",
	"nodes.all(n, has(n.labels.leaf)) && nodes.map(n, n.labels.leaf).distinct().size() == 1",
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
}

// problem is one of those that are drawn.
type problem struct {
	group nodeset.Group
	nodes []nodeset.Node
}

func draw(t *rapid.T, maxNodes int, prefers bool) problem {
	var p problem
	n, kinds := rapid.IntRange(1, maxNodes).Draw(t, "nodes"), rapid.IntRange(1, 2).Draw(t, "kinds")
	// A preference may fail on a set that another search does not look at.
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
		node.Placed = rapid.IntRange(0, 7).Draw(t, "placed") == 0
		for range kinds {
			node.Takes = append(node.Takes, rapid.IntRange(0, 4).Draw(t, "takes") > 0)
		}
		if node.Placed {
			p.group.Placed++
		}
		p.nodes = append(p.nodes, node)
	}
	for range kinds {
		p.group.Kinds = append(p.group.Kinds, rapid.IntRange(0, 3).Draw(t, "count"))
	}
	p.group.Kinds[0] = max(1, p.group.Kinds[0])
	p.group.Namespace, p.group.Name = "default", "g"
	p.group.Constraint = &v1alpha1.NodeSetConstraint{Name: "set", Expression: rapid.SampledFrom(expressions).Draw(t, "expression")}
	if prefers {
		p.group.Constraint.Preference = rapid.SampledFrom(preferences).Draw(t, "preference")
	}
	return p
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

// brute looks at all sets in their order.
func (p problem) brute(t require.TestingT, e *device.Environment) (best []int, failed bool) {
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
	var value int64
	counts := append([]int{p.group.Placed}, p.group.Kinds...)
	var visit func(request, from, left int, set []int) bool
	visit = func(request, from, left int, set []int) (more bool) {
		for left == 0 {
			request++
			if request == len(counts) {
				of := make([]*device.Device, len(set))
				for i, at := range set {
					of[i] = devices[at]
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
					best = append([]int{}, set...)
					return false
				}
				v, err := preference.Value(context.Background(), of, cel.NewBudget(1<<30))
				if err != nil {
					failed = true
					return false
				}
				if best == nil || v > value {
					best, value = append([]int{}, set...), v
				}
				return true
			}
			from, left = 0, counts[request]
		}
		for i := from; i < len(p.nodes); i++ {
			n, taken := p.nodes[i], false
			for _, at := range set {
				taken = taken || at == i
			}
			fits := n.Placed
			if request > 0 {
				fits = !n.Placed && n.Takes[request-1]
			}
			if taken || !fits {
				continue
			}
			if !visit(request, i+1, left-1, append(set, i)) {
				return false
			}
		}
		return true
	}
	visit(0, 0, counts[0], nil)
	return best, failed
}

func (p problem) choose(t require.TestingT, c *nodeset.Chooser) (set []int, failed bool) {
	problem, err := nodeset.NewProblem(&p.group)
	require.NoError(t, err)
	prepared, err := c.Prepare(context.Background(), problem.Claim, nodeset.Classes{}, true)
	require.NoError(t, err)
	choice, err := c.Choose(context.Background(), problem, prepared, p.nodes)
	if err != nil {
		return nil, true
	}
	if choice == nil {
		return nil, false
	}
	set = append(set, choice.Placed...)
	for _, kind := range choice.Kinds {
		set = append(set, kind...)
	}
	return set, false
}

func requireSame(t *testing.T, maxNodes int, prefers bool) {
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	found, none, failures := 0, 0, 0
	cases.Check(t, func(t *rapid.T) {
		p := draw(t, maxNodes, prefers)
		want, wantFailed := p.brute(t, chooser.Environment())
		got, failed := p.choose(t, chooser)
		require.Equal(t, wantFailed, failed, "%+v", p.group.Constraint)
		if !failed {
			require.Equal(t, want, got, "%+v", p.group.Constraint)
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

// TestSameAsExhaustive compares with a look at all sets.
func TestSameAsExhaustive(t *testing.T) { requireSame(t, 20, false) }

// TestBestOfAll compares with a look at all sets, of which the best is wanted.
func TestBestOfAll(t *testing.T) { requireSame(t, 12, true) }

// TestBoxesOfManyNodes: however a box lies in a torus, the search comes to it without going back. What is counted are steps.
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
			problem, err := nodeset.NewProblem(group)
			require.NoError(t, err)
			prepared, err := chooser.Prepare(t.Context(), problem.Claim, nodeset.Classes{}, true)
			require.NoError(t, err)
			choice, err := chooser.Choose(t.Context(), problem, prepared, nodes, allocator.WithStepBudget(int64(2*of.one*of.other)))
			require.NoError(t, err)
			require.NotNil(t, choice)
		})
	}
}
