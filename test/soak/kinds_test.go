// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/wiring"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
)

// kindLabel is a label of claims with the name of their kind.
const kindLabel = "celset.dev/kind"

// mesh is the topology of the devices on each node: 16 devices in 4 rows.
var mesh = func() topology.Topology {
	t, err := topology.NewMesh(topology.Family{Driver: "mesh.example.com", Prefix: "mesh"}, 4, 4)
	if err != nil {
		panic(err) // the sizes are constants, so there is no error
	}
	return t
}()

// A kind is a kind of pods. Each pod has its own claim.
type kind struct {
	name, profile string
	count         int
	// expression is the CEL constraint of the claim, or "". attribute, if not empty, must have the same value in all devices.
	expression, attribute string
	holds                 func(names []string) bool
	// part, if not nil, is the request of the claim. Otherwise the claim requests devices of the mesh.
	part env.Part
}

// blockOf returns an expression that is true if the devices form a block of rows x columns.
func blockOf(rows, columns int) string {
	const driver = "mesh.example.com"
	return "(" + env.Span(driver, "row", rows) + ") && (" + env.Span(driver, "col", columns) + ")"
}

// kinds are the kinds of pods for both profiles, with and without constraints.
var kinds = []*kind{
	{
		name: "grid", profile: env.CelsetProfile, count: 4, expression: blockOf(2, 2),
		holds: func(names []string) bool { return wiring.IsBlock(mesh, names, 2, 2) },
	},
	{
		name: "line", profile: env.CelsetProfile, count: 3, expression: blockOf(1, 3),
		holds: func(names []string) bool { return wiring.IsBlock(mesh, names, 1, 3) },
	},
	{name: "plain", profile: env.CelsetProfile, count: 2, holds: func([]string) bool { return true }},
	{name: "stock", profile: env.StockProfile, count: 2, holds: func([]string) bool { return true }},
	{name: "row", profile: env.StockProfile, count: 3, attribute: "mesh.example.com/row", holds: inOneRow},
}

// block is the kind of pods of a high priority. Each needs half of a node's devices.
var block = &kind{
	name: "block", profile: env.CelsetProfile, count: 8, expression: blockOf(2, 4),
	holds: func(names []string) bool { return wiring.IsBlock(mesh, names, 2, 4) },
}

// divided are the kinds of pods that need a part of a chip, or a share of a link.
var divided = []*kind{
	{name: "chip", profile: env.CelsetProfile, count: 1, holds: is("whole"), part: sizeOf("whole")},
	{name: "quarter", profile: env.StockProfile, count: 1, holds: is("quarter-"), part: sizeOf("quarter")},
	{name: "link", profile: env.CelsetProfile, count: 1, holds: is("link"), part: slotsOf(slots)},
	{name: "slot", profile: env.CelsetProfile, count: 1, holds: is("link"), part: slotsOf(1)},
}

// is returns a function that reports whether there is a single device and its name has the prefix.
func is(prefix string) func(names []string) bool {
	return func(names []string) bool { return strings.HasPrefix(names[0], prefix) }
}

// kindNamed returns the kind with a name, or nil.
func kindNamed(name string) *kind {
	all := slices.Concat(kinds, []*kind{block}, divided)
	if i := slices.IndexFunc(all, func(k *kind) bool { return k.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func inOneRow(names []string) bool {
	devices, err := mesh.Select(names)
	return err == nil && !slices.ContainsFunc(devices, func(d topology.Device) bool {
		return d.Coordinates.Row != devices[0].Coordinates.Row
	})
}

// judge returns the mistake in a claim's allocation, or "".
func judge(claim *resourceapi.ResourceClaim) string {
	k := kindNamed(claim.Labels[kindLabel])
	if k == nil {
		return "is of no kind"
	}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Device)
		if result.Pool != claim.Status.Allocation.Devices.Results[0].Pool {
			return "has devices of two nodes"
		}
	}
	if len(names) != k.count || !k.holds(names) {
		return fmt.Sprintf("has %v, which is no set of a %s", names, k.name)
	}
	return ""
}

// template returns the claim template of the kind.
func (k *kind) template() *resourceapi.ResourceClaimTemplate {
	return &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: k.name},
		Spec:       resourceapi.ResourceClaimTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: k.labels()}, Spec: k.claim("").Spec},
	}
}

func (k *kind) labels() map[string]string { return map[string]string{kindLabel: k.name} }

// claim returns a claim of the kind for several pods.
func (k *kind) claim(name string) *resourceapi.ResourceClaim {
	parts := []env.Part{env.Request("devices", mesh.Drivers()[0], int64(k.count))}
	switch {
	case k.part != nil:
		parts = []env.Part{k.part}
	case k.expression != "":
		parts = append(parts, env.Constrained(k.name, k.expression))
	case k.attribute != "":
		parts = append(parts, env.MatchAttribute(k.attribute))
	}
	claim := env.Claim(name, parts...)
	claim.Labels = k.labels()
	return claim
}

func (k *kind) pod(name string) *corev1.Pod { return env.PodFrom(name, k.profile, k.name) }

// TestSetsAreJudged checks that judge finds wrong allocations. Otherwise the soak tests could not find them.
func TestSetsAreJudged(t *testing.T) {
	for _, test := range []struct{ kind, devices, want string }{
		{"grid", "mesh-0 mesh-1 mesh-4 mesh-5", ""},
		{"grid", "mesh-0 mesh-1 mesh-2 mesh-3", "no set of a grid"},
		{"line", "mesh-4 mesh-5 mesh-6", ""},
		{"line", "mesh-2 mesh-3 mesh-4", "no set of a line"},
		{"row", "mesh-4 mesh-5 mesh-7", ""},
		{"row", "mesh-3 mesh-4 mesh-5", "no set of a row"},
		{"block", "mesh-0 mesh-1 mesh-2 mesh-3 mesh-4 mesh-5 mesh-6 mesh-7", ""},
		{"block", "mesh-0 mesh-1 mesh-2 mesh-3 mesh-4 mesh-5 mesh-6 mesh-8", "no set of a block"},
		{"plain", "mesh-4 mesh-9", ""},
		{"plain", "mesh-4", "no set of a plain"},
		{"stock", "mesh-1 mesh-2@elsewhere", "two nodes"},
		{"chip", "whole", ""},
		{"chip", "quarter-1", "no set of a chip"},
		{"quarter", "quarter-1", ""},
		{"link", "link", ""},
		{"other", "mesh-1", "is of no kind"},
	} {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kindLabel: test.kind}}}
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		for device := range strings.FieldsSeq(test.devices) {
			name, pool, _ := strings.Cut(device, "@")
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
				Driver: mesh.Drivers()[0], Pool: pool, Device: name,
			})
		}
		got := judge(claim)
		require.True(t, test.want == "" && got == "" || test.want != "" && strings.Contains(got, test.want), "%s %s: %s", test.kind, test.devices, got)
	}
}
