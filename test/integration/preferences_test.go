// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// prefer defines a preference in a claim.
func prefer(name, expression string) part {
	return configure(parameters(map[string]string{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.PreferenceKind, "name": name, "expression": expression,
	}))
}

// TestPreferenceChoosesNodeAndDevices: of three rings each has another best pair of neighbours. The
// first pod gets the best of all, the second the best of what is left.
func TestPreferenceChoosesNodeAndDevices(t *testing.T) {
	l := newLab(t, "preference", 3)
	ring := l.ring(t, 8)
	driver := ring.Drivers()[0]
	l.occupy(t, l.nodes[0], ring, "mla-7")
	l.occupy(t, l.nodes[2], ring, "mla-6")
	greatest := prefer("greatest", fmt.Sprintf("devices.map(d, d.attributes[%q].index).sum()", driver))
	for _, want := range []struct {
		pod, node string
		devices   []string
	}{
		{"first", l.nodes[1], []string{"mla-6", "mla-7"}},
		{"second", l.nodes[0], []string{"mla-5", "mla-6"}},
	} {
		l.run(t, want.pod, celsetProfile, request("mla", driver, 2), constrained("row", contiguous(driver, 2)), greatest)
		l.requireRunning(t, want.pod)
		require.Equal(t, want.node, l.pod(t, want.pod).Spec.NodeName, want.pod)
		require.Equal(t, want.devices, l.devicesOf(t, want.pod))
	}

	// Without a constraint it is the same, and a mistake is told.
	l.run(t, "single", celsetProfile, request("mla", driver, 1), greatest)
	l.requireRunning(t, "single")
	require.Equal(t, l.nodes[2], l.pod(t, "single").Spec.NodeName)
	require.Equal(t, []string{"mla-7"}, l.devicesOf(t, "single"))
	l.run(t, "mistaken", celsetProfile, request("mla", driver, 1), prefer("mistaken", "true"))
	l.requireRefused(t, "mistaken", "preference mistaken", "the expression must return int, it returns bool")
}

// TestDefaultPreferenceKeepsPairsWhole: one of two nodes has a device whose partner is in use. A pod
// whose claim says nothing gets that, in a profile with the policy; two pairs remain for others on
// each node that has them.
func TestDefaultPreferenceKeepsPairsWhole(t *testing.T) {
	l := newLab(t, "whole", 2)
	family := l.family("mla")
	ring := l.ringWith(t, 4, definition("pair", fmt.Sprintf(
		"devices.map(d, d.attributes[%[1]q].index / 2).max() == devices.map(d, d.attributes[%[1]q].index / 2).min()", family.Driver)))
	l.occupy(t, l.nodes[1], ring, "mla-2")
	l.run(t, "single", wholeProfile, request("mla", family.Driver, 1))
	l.requireRunning(t, "single")
	require.Equal(t, l.nodes[1], l.pod(t, "single").Spec.NodeName)
	require.Equal(t, []string{"mla-3"}, l.devicesOf(t, "single"))
	for i, node := range []string{l.nodes[0], l.nodes[0], l.nodes[1]} {
		name := fmt.Sprintf("pair-%d", i)
		l.createClaim(t, name, request("mla", family.Driver, 2), refer("pair"))
		l.createPodOn(t, node, name, wholeProfile, name)
		l.requireRunning(t, name)
	}
}
