// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// TestManyKinds: assignments of pods that all differ end. Pods of the first two kinds exclude each other on every node, so that
// each set of two nodes has very many ways that fail.
func TestManyKinds(t *testing.T) {
	const kinds, nodes = 40, 12
	p := &problem{group: nodeset.Group{
		Namespace: "default", Name: "g", Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: "nodes.size() == 2", PodsPerNode: 20},
	}}
	for range kinds {
		p.group.Kinds, p.needs = append(p.group.Kinds, 1), append(p.needs, 1)
	}
	for i := range nodes {
		n := nodeset.Node{Name: fmt.Sprintf("n%02d", i), Free: 20}
		for range kinds {
			n.Takes = append(n.Takes, true)
		}
		// One pod less than the node may have, of which the bounds know nothing: they look at each kind by itself.
		p.nodes, p.has, p.apart = append(p.nodes, n), append(p.has, 19), append(p.apart, true)
	}
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	choice, err := p.search(chooser).Choose(t.Context())
	require.Nil(t, choice)
	require.ErrorContains(t, err, "use fewer kinds of pods")
}

// TestSomeOfManyKinds: there are very many ways to leave out one of 64 pods, of which some are tried.
func TestSomeOfManyKinds(t *testing.T) {
	p := &problem{group: nodeset.Group{
		Namespace: "default", Name: "g", Least: 60, ReadsDevices: true, Constraint: &v1alpha1.NodeSetConstraint{Name: "set", Expression: "nodes.all(n, n.devices.size() == 1)"},
	}}
	for range 64 {
		p.group.Kinds = append(p.group.Kinds, 1)
	}
	chooser, err := nodeset.NewChooser(nil)
	require.NoError(t, err)
	choice, err := p.search(chooser).Choose(t.Context())
	require.NoError(t, err)
	require.Nil(t, choice)
}
