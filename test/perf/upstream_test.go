// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

// Kubernetes has no constraint on sets but that devices have an attribute in
// common (or all differ in it). With derived attributes, which a claim computes
// with CEL from those that the driver publishes, and lists, of which devices must
// share an element, that is enough for a shape if its sets can be numbered: each
// device lists the numbers of those that it belongs to, and as many devices as a
// set has, with a number in common, are that set.
//
// Whole pairs and couples need no list, but a claim with a request for each pair or
// device, and a constraint for each pair: it asks for the same devices in another
// form.
//
// What can't be expressed, or need not:
//
//   - grid-8x8-8, torus-8x8-8 and torus-8x8-16 have 1,200 sets, 2,096, and far more.
//     They begin at no small number of places (two separate squares are one of them,
//     and so are closed ways of many forms), and as numbers of 64 bits they are longer
//     than the 10 KiB that an expression may have. The 700 sets of torus-4x4-8 fit.
//   - torus-4x4-16 is all devices and needs no constraint.
//
// What the lists have in them is knowledge of the shape and of the hardware that a
// claim for a CEL constraint does not need.

// derivedName is the attribute that a claim computes.
const derivedName = "derived/place"

// upstreamClaim asks upstream's allocator for the devices of a scenario. It is nil
// if that can't be expressed.
func upstreamClaim(s shape.Scenario) *resourceapi.ResourceClaim {
	claim := s.PlainClaim()
	claim.Name = "upstream-" + s.Name
	switch s.Name {
	case "pairs-8-2", "pairs-8-4":
		pairRequests(claim, s.Wanted()/2)
	case "couples-8-4":
		coupleRequests(claim, s.Wanted()/2)
	case "ring-12-4":
		derive(claim, among(0, 12-4, "s <= $index && $index < s + 4"))
	case "ring-12-6":
		derive(claim, among(0, 12-1, "($index - s + 12) % 12 < 6"))
	case "grid-4x4-4":
		derive(claim, blocks(4, 4, 2, 2))
	case "grid-8x8-4":
		derive(claim, blocks(8, 8, 2, 2))
	case "torus-8x8-4":
		derive(claim, wrappedSquares(8))
	case "torus-4x4-4":
		// A row or column of four closes too.
		derive(claim, wrappedSquares(4)+" + [100 + $row, 200 + $col]")
	case "torus-4x4-8":
		derive(claim, enumerated(s)+".filter(s, s / [1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768]["+
			"$row * 4 + $col] % 2 == 1)")
	case "board-4x8-8":
		// The numbers of the second orientation start elsewhere.
		derive(claim, blocks(4, 8, 2, 4)+" + "+blocks(4, 8, 4, 2)+".map(s, s + 100)")
	case "block-8x8-16":
		derive(claim, blocks(8, 8, 4, 4))
	case "peers-8-4":
		// The cliques of four are the two quads, which are numbered one after the other.
		derive(claim, "int($id.split('-')[1]) / 4")
	default:
		return nil
	}
	return claim
}

// among is the list of those numbers from first to last for which a condition on s
// holds.
func among(first, last int, condition string) string {
	var numbers []string
	for i := first; i <= last; i++ {
		numbers = append(numbers, fmt.Sprint(i))
	}
	return "[" + strings.Join(numbers, ",") + "].filter(s, " + condition + ")"
}

// blocks lists the corners of the rectangles that a device of a mesh is in.
func blocks(meshRows, meshCols, rows, cols int) string {
	return among(0, meshRows*meshCols-1, fmt.Sprintf(
		"s / %[2]d <= %[1]d && s %% %[2]d <= %[3]d && "+
			"s / %[2]d <= $row && $row < s / %[2]d + %[4]d && s %% %[2]d <= $col && $col < s %% %[2]d + %[5]d",
		meshRows-rows, meshCols, meshCols-cols, rows, cols))
}

// wrappedSquares lists the corners of the squares of 2x2 that a device of a torus
// is in.
func wrappedSquares(size int) string {
	return among(0, size*size-1, fmt.Sprintf(
		"($row - s / %[1]d + %[1]d) %% %[1]d < 2 && ($col - s %% %[1]d + %[1]d) %% %[1]d < 2", size))
}

// enumerated lists all sets that have the shape, as numbers with a bit for each
// device.
func enumerated(s shape.Scenario) string {
	var sets []string
	for set := range s.All() + 1 {
		if set.Len() == s.Wanted() && s.Holds(s.Names(set)) {
			sets = append(sets, fmt.Sprint(uint64(set)))
		}
	}
	return "[" + strings.Join(sets, ",") + "]"
}

// derive computes the attribute for the one request of the claim and wants the
// devices to have an element of it in common. $x is the attribute x of the device.
func derive(claim *resourceapi.ResourceClaim, expression string) {
	exactly := claim.Spec.Devices.Requests[0].Exactly
	domain := "device.attributes['" + exactly.DeviceClassName + "']."
	exactly.DerivedAttributes = []resourceapi.DeviceDerivedAttribute{{
		Name:       derivedName,
		Expression: strings.ReplaceAll(expression, "$", domain),
	}}
	match(claim, derivedName)
}

// pairRequests has a request for each pair of bridged devices.
func pairRequests(claim *resourceapi.ResourceClaim, pairs int) {
	r := claim.Spec.Devices.Requests[0]
	claim.Spec.Devices.Requests = nil
	for i := range pairs {
		pair := *r.DeepCopy()
		pair.Name = fmt.Sprint("pair-", i)
		pair.Exactly.Count = 2
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, pair)
		match(claim, resourceapi.FullyQualifiedName(pair.Exactly.DeviceClassName+"/"+topology.AttributeBridge), pair.Name)
	}
}

// coupleRequests has a request for each GPU and one for its NIC.
func coupleRequests(claim *resourceapi.ResourceClaim, couples int) {
	kinds := claim.Spec.Devices.Requests
	claim.Spec.Devices.Requests = nil
	for i := range couples {
		var names []string
		for _, kind := range kinds {
			r := *kind.DeepCopy()
			r.Name = fmt.Sprint(kind.Name, "-", i)
			r.Exactly.Count = 1
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, r)
			names = append(names, r.Name)
		}
		match(claim, topology.AttributePCIeRoot, names...)
	}
}

func match(claim *resourceapi.ResourceClaim, attribute resourceapi.FullyQualifiedName, requests ...string) {
	claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		Requests: requests, MatchAttribute: &attribute,
	})
}

// TestUpstreamClaims: the list of what can't be expressed is complete, and what can
// be is within the API's limits.
func TestUpstreamClaims(t *testing.T) {
	var none []string
	for _, s := range shape.Scenarios() {
		claim := upstreamClaim(s)
		if claim == nil {
			none = append(none, s.Name)
			continue
		}
		for _, r := range claim.Spec.Devices.Requests {
			for _, derived := range r.Exactly.DerivedAttributes {
				require.LessOrEqual(t, len(derived.Expression), resourceapi.CELSelectorExpressionMaxLength, s.Name)
			}
		}
	}
	require.Equal(t, []string{"grid-8x8-8", "torus-4x4-16", "torus-8x8-8", "torus-8x8-16"}, none)
}
