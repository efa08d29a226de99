// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/topology"
)

// shape is a constraint on the devices of a topology.
type shape struct {
	name       string
	topology   func() (topology.Topology, error)
	count      int
	expression string
	// holds judges a set by the topology, not by the expression.
	holds func(topology.Topology, []string) bool
}

const accelerators = "mla.example.com"

var family = topology.Family{Driver: accelerators, Prefix: "mla"}

func mesh(rows, cols int) func() (topology.Topology, error) {
	return func() (topology.Topology, error) { return topology.NewMesh(family, rows, cols) }
}

// written replaces D.x by the attribute x of device D.
func written(expression string) string {
	for _, d := range []string{"d", "o"} {
		for _, attribute := range []string{"index", "row", "col"} {
			expression = strings.ReplaceAll(expression, d+"."+attribute, d+".attributes['"+accelerators+"']."+attribute)
		}
	}
	return expression
}

const neighbours = `devices.all(d, devices.filter(o, d != o && (
	d.row == o.row && (d.col == o.col + 1 || d.col == o.col - 1) ||
	d.col == o.col && (d.row == o.row + 1 || d.row == o.row - 1))).size() >= 2)`

func boundingBox(rows, cols int) string {
	return fmt.Sprintf("devices.map(d, d.row).max() - devices.map(d, d.row).min() == %d && "+
		"devices.map(d, d.col).max() - devices.map(d, d.col).min() == %d", rows-1, cols-1)
}

func twoNeighbours(t topology.Topology, names []string) bool {
	for _, d := range names {
		neighbours := 0
		for _, o := range names {
			if t.Adjacent(d, o) {
				neighbours++
			}
		}
		if neighbours < 2 {
			return false
		}
	}
	return true
}

func shapes() []shape {
	block := func(rows, cols int) func(topology.Topology, []string) bool {
		return func(t topology.Topology, names []string) bool { return t.IsBlock(names, rows, cols) }
	}
	return []shape{
		{"ring 4 of 12", func() (topology.Topology, error) { return topology.NewRing(family, 12) }, 4,
			"devices.map(d, d.index).max() - devices.map(d, d.index).min() == 3", topology.Topology.Contiguous},
		{"grid 4 of 64", mesh(8, 8), 4, neighbours, twoNeighbours},
		{"grid 8 of 64", mesh(8, 8), 8, neighbours, twoNeighbours},
		{"block 2x4 of 32", mesh(4, 8), 8, boundingBox(2, 4), block(2, 4)},
		{"block 4x4 of 64", mesh(8, 8), 16, boundingBox(4, 4), block(4, 4)},
	}
}

// layouts are the devices in use, by what they leave.
func layouts(n, columns int) map[string][]int {
	var third, half, checkerboard []int
	for i := range n {
		if i*i%10 == 4 || i%7 == 3 {
			third = append(third, i)
		}
		if i*7%16 < 8 {
			half = append(half, i)
		}
		if (i/columns+i%columns)%2 == 0 {
			checkerboard = append(checkerboard, i)
		}
	}
	return map[string][]int{"all free": nil, "70 % free": third, "half free": half, "checkerboard": checkerboard}
}

func shapeClaim(t *testing.T, s shape) *resourceapi.ResourceClaim {
	t.Helper()
	raw, err := json.Marshal(v1alpha1.CELDeviceConstraint{
		TypeMeta:   metav1.TypeMeta{APIVersion: "celset.dev/v1alpha1", Kind: "CELDeviceConstraint"},
		Name:       "shape",
		Expression: written(s.expression),
	})
	require.NoError(t, err)
	return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Requests: []resourceapi.DeviceRequest{{Name: "mla", Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: accelerators, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(s.count),
		}}},
		Constraints: []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/shape"))}},
		Config: []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "celset.dev", Parameters: runtime.RawExtension{Raw: raw}},
		}}},
	}}}
}

// Sets of 4 to 16 of up to 64 devices, up to 4.9e14 of them, are decided in a few
// dozen steps with one or two evaluations of the whole expression. The figures are
// upper bounds; a step is one look for one more device.
func TestShapesTakeFewSteps(t *testing.T) {
	for _, s := range shapes() {
		top, err := s.topology()
		require.NoError(t, err)
		slices, err := top.ResourceSlices("node-1")
		require.NoError(t, err)
		for layout, taken := range layouts(len(top.Devices), max(top.Cols, 4)) {
			t.Run(s.name+", "+layout, func(t *testing.T) {
				state := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()}
				for _, i := range taken {
					state.AllocatedDevices.Insert(structured.MakeDeviceID(accelerators, "node-1", top.Devices[i].Name))
				}
				class := oneClass{&resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: accelerators}}}
				a, err := allocator.NewAllocator(t.Context(), structured.Features{}, state, class, slices, dracel.NewCache(10, dracel.Features{}))
				require.NoError(t, err)
				results, err := a.Allocate(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}},
					[]*resourceapi.ResourceClaim{shapeClaim(t, s)})
				require.NoError(t, err)
				stats := a.Stats()
				require.LessOrEqual(t, stats.Steps, int64(120), "steps")
				require.LessOrEqual(t, stats.Evaluations, int64(3), "evaluations of the whole expression")
				n := int64(len(top.Devices))
				require.LessOrEqual(t, stats.TableEvaluations, n*n+4*n, "entries of tables")
				if results != nil {
					var names []string
					for _, result := range results[0].Devices.Results {
						names = append(names, result.Device)
					}
					require.True(t, s.holds(top, names), "%v", names)
				}
				t.Logf("%+v, found: %v", stats, results != nil)
			})
		}
	}
}
