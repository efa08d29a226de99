// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/conformance/scenario"
)

// docs/differences.md lists upstream's bugs that our allocator fixes, and random cases meet some of them. The function
// translated changes errors of upstream into the errors that ours returns. For all other listed differences, requireListed
// removes the cause from the case and then requires equal outcomes. So each difference must be listed.

var overLimit = regexp.MustCompile(`: adding \d+ devices exceeds the claim limit of \d+, `)

var aboutNode = regexp.MustCompile(`asks for all devices, but resource pool \S+ is currently |unsupported ResourceSlice.NodeSelector with \d+ terms`)

// translated returns upstream's outcome with our errors: an error about the slices of a node excludes only that node.
func translated(c *scenario.Case, o outcome) outcome {
	if o.kind == fatal && overLimit.MatchString(o.err.Error()) && !slices.ContainsFunc(c.Claims, allocator.AsksForTooMany) {
		return outcome{kind: none}
	}
	if o.kind == fatal && aboutNode.MatchString(o.err.Error()) {
		return outcome{kind: onNode, err: fmt.Errorf("%w%w", o.err, structured.ErrFailedAllocationOnNode)}
	}
	return o
}

// requireListed requires that two different outcomes of a case become equal after the causes of listed differences are removed.
func requireListed(t require.TestingT, c *scenario.Case, want, got outcome, options ...allocator.Option) {
	without := c.Clone()
	stripped := stripListed(without)
	if theirs := upstream(experimental, c); got.kind == fatal && theirs.kind == fatal && overLimit.MatchString(theirs.err.Error()) {
		// If a request for all devices gets too many, upstream ends the search with an error. Our allocator only excludes the node.
		// So it continues and finds the mistake in a later claim. Without such requests both allocators must find that mistake.
		stripped = trait("all devices")(without) || stripped
	}
	if !stripRefusals(without, want) && !stripped {
		requireEqual(t, c, want, got, "experimental is right, ours is not")
		return
	}
	requireEqual(t, without, translated(without, upstream(experimental, without)), ours(without, options...),
		"experimental is right, ours is not, in a case without what is listed")
}

// stripListed removes the causes of listed differences from the case, and reports whether there were any.
func stripListed(c *scenario.Case) bool {
	changed := false
	if strip := trait("shared counters"); strip(c.Clone()) {
		changed = trait("admin access")(c)
	}
	// Outcomes may differ if devices in use are not part of the pool that this node sees. A node may see an older generation
	// than other nodes, may skip slices that need a disabled feature, and may see only some of too many slices.
	type generations = map[int64]bool
	of, has, shared := map[scenario.Device]generations{}, map[scenario.Device]generations{}, map[scenario.Device]bool{}
	add := func(to map[scenario.Device]generations, is scenario.Device, generation int64) {
		if to[is] == nil {
			to[is] = generations{}
		}
		to[is][generation] = true
	}
	poolOf := func(slice *resourceapi.ResourceSlice) scenario.Device {
		return scenario.Device{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name}
	}
	for _, slice := range c.Slices {
		add(of, poolOf(slice), slice.Spec.Pool.Generation)
	}
	isSeen := func(slice *resourceapi.ResourceSlice) bool {
		published := 0
		for _, other := range c.Slices {
			if poolOf(other) == poolOf(slice) && other.Spec.Pool.Generation == slice.Spec.Pool.Generation {
				published++
			}
		}
		return published <= int(slice.Spec.Pool.ResourceSliceCount) && (c.Features.CompatibilityGroups || !hasGroups(slice))
	}
	c.Devices(func(slice *resourceapi.ResourceSlice, d *resourceapi.Device) {
		is := poolOf(slice)
		is.Device = d.Name
		if isSeen(slice) {
			add(has, is, slice.Spec.Pool.Generation)
		}
		shared[is] = c.Features.ConsumableCapacity && ptr.Deref(d.AllowMultipleAllocations, false)
	})
	hasLeft := func(d scenario.Device) bool {
		return len(has[d]) < len(of[scenario.Device{Driver: d.Driver, Pool: d.Pool}])
	}
	before := len(c.Allocated) + len(c.Shares)
	c.Allocated = slices.DeleteFunc(c.Allocated, hasLeft)
	c.Shares = slices.DeleteFunc(c.Shares, func(s scenario.Share) bool { return hasLeft(s.Device) || !shared[s.Device] })
	return changed || len(c.Allocated)+len(c.Shares) < before
}

// stripRefusals removes the constraints that ended upstream's search with an error: one of them refuses a device of a request
// for all devices. Our search continues in this case.
func stripRefusals(c *scenario.Case, theirs outcome) bool {
	if theirs.kind != fatal || !strings.Contains(theirs.err.Error(), "because a claim constraint would not be satisfied") {
		return false
	}
	for i := range c.Claims {
		c.Claims[i].Spec.Devices.Constraints = nil
	}
	return true
}

func hasGroups(slice *resourceapi.ResourceSlice) bool {
	return slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool {
		return slices.ContainsFunc(d.ConsumesCounters, func(c resourceapi.DeviceCounterConsumption) bool {
			return len(c.CompatibilityGroups) > 0
		})
	})
}

func trait(name string) func(*scenario.Case) bool {
	i := slices.IndexFunc(scenario.Traits, func(t scenario.Trait) bool { return strings.EqualFold(t.Name, name) })
	return scenario.Traits[i].Strip
}
