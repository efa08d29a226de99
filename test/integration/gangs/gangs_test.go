// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGangThatFitsIsBoundWhole fills two rings of eight devices with four pods of four devices in a
// row.
func TestGangThatFitsIsBoundWhole(t *testing.T) {
	c := start(t)
	c.rings(t, 2)
	members := c.gang(t, "whole", 4, 4)
	taken := map[string][]string{}
	for name, at := range c.served(t, members...) {
		require.Contains(t, [][]string{{"mla-0", "mla-1", "mla-2", "mla-3"}, {"mla-4", "mla-5", "mla-6", "mla-7"}}, at.devices, name)
		taken[at.node] = append(taken[at.node], at.devices...)
	}
	require.Len(t, taken, 2)
	for node, devices := range taken {
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(devices))), 8, "each device of %s has one pod", node)
	}
}

// TestGangThatDoesNotFitBindsNobody: of a ring of eight devices of which the third is in use, six
// are left that are enough for two pods of three each, but there is one row of three only. The first
// pod's devices are given back: another pod gets them. When there is room the gang is bound.
func TestGangThatDoesNotFitBindsNobody(t *testing.T) {
	c := start(t)
	c.rings(t, 1)
	c.occupy(t, "third", 2)
	require.Equal(t, []string{"mla-2"}, c.served(t, "third")["third"].devices)

	members := c.gang(t, "two-rows", 2, 3)
	c.requireRefused(t, members...)
	// Five in a row are free only if the gang has none of them.
	c.single(t, "five", 5)
	require.Equal(t, []string{"mla-3", "mla-4", "mla-5", "mla-6", "mla-7"}, c.served(t, "five")["five"].devices)
	c.requireNothing(t, members...)

	c.delete(t, "five")
	c.requireNothing(t, members...)
	c.delete(t, "third")
	var all []string
	for name, at := range c.served(t, members...) {
		require.Len(t, at.devices, 3, name)
		all = append(all, at.devices...)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), 6, "no device is in two claims: %v", all)

	// What they had is free for others when they have ended.
	for _, member := range members {
		c.delete(t, member)
	}
	c.single(t, "eight", 8)
	require.Len(t, c.served(t, "eight")["eight"].devices, 8)
}
