// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

func named(name string) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// What is kept has a limit, and a new version of a node takes the place of the former one.
func TestDependentInventoriesAreBounded(t *testing.T) {
	var kept dependentInventories
	none := structured.Features{}
	half := &Inventory{Candidates: make([]*Candidate, maxDependentDevices/2-1)}
	one, two, three := named("node-1"), named("node-2"), named("node-3")
	kept.keep(none, one, half)
	kept.keep(none, two, half)
	require.Equal(t, maxDependentDevices, kept.size)
	kept.keep(none, three, &Inventory{})
	require.Nil(t, kept.get(none, three), "no room")
	require.Same(t, half, kept.get(none, two))

	newer := named("node-2")
	kept.keep(none, newer, &Inventory{})
	require.Nil(t, kept.get(none, two))
	require.NotNil(t, kept.get(none, newer))
	kept.keep(none, three, &Inventory{})
	require.NotNil(t, kept.get(none, three), "there is room again")
	require.Equal(t, maxDependentDevices/2+2, kept.size)
}
