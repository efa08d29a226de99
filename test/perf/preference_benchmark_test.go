// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/shape"
)

// preferred are so many nodes with occupancies of their own, none of which was seen before.
const preferred = 100

// preferenceKinds are what a claim for a shape may prefer besides. Devices are told apart by their place.
func preferenceKinds(b *testing.B, first resourceapi.Device) map[string]*v1alpha1.CELDevicePreference {
	place := "0"
	for _, one := range []struct{ attribute, place string }{
		{"index", "d.attributes[d.driver].index"},
		{"row", "d.attributes[d.driver].row * 8 + d.attributes[d.driver].col"},
		{"bridge", "d.attributes[d.driver].bridge"},
		{"id", "d.attributes[d.driver].id.endsWith('7') ? 1 : 0"},
		{"resource.kubernetes.io/pcieRoot", "d.attributes['resource.kubernetes.io'].pcieRoot.endsWith('7') ? 1 : 0"},
	} {
		if _, has := first.Attributes[resourceapi.QualifiedName(one.attribute)]; has {
			place = one.place
			break
		}
	}
	if place == "0" {
		b.Fatalf("device %s has no place: %v", first.Name, first.Attributes)
	}
	names := "devices.map(d, " + place + ")"
	return map[string]*v1alpha1.CELDevicePreference{
		"none":      nil,
		"last":      {Expression: names + ".sum()"},
		"compact":   {Expression: names + ".min() - " + names + ".max()"},
		"keepwhole": {Policy: v1alpha1.PolicyKeepWhole},
	}
}

// BenchmarkPreferences is the table of scenarios with a preference each. What is known before is
// what is found out about a kind of hardware: tables, and the sets of shapes. The occupancy of each
// node is a new one.
//
//	none        any set
//	last        the greatest sum of places, which are indices, or counted row by row
//	compact     the smallest distance of places
//	keepwhole   the set after which most sets of the shape are left, and of half and twice as many
func BenchmarkPreferences(b *testing.B) {
	for _, s := range shape.Scenarios() {
		b.Run("scenario="+s.Name, func(b *testing.B) {
			h := newHardware(b, s, preferred+1)
			h.classes = withShape(b, h.classes, s)
			for _, o := range s.Occupancies {
				f := h.occupied(append([]shape.Set{0}, s.Variants(o, preferred)...))
				for kind, preference := range preferenceKinds(b, h.slices[0][0].Spec.Devices[0]) {
					b.Run("layout="+o.Name+"/prefer="+kind, func(b *testing.B) { f.preferring(b, preference) })
				}
			}
		})
	}
}

// preferring allocates on all nodes but the first, after that one.
func (f *fleet) preferring(b *testing.B, preference *v1alpha1.CELDevicePreference) {
	claim, err := f.Claim()
	require.NoError(b, err)
	if preference != nil {
		claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: configured(b, preference)})
	}
	claims, ctx := []*resourceapi.ResourceClaim{claim}, b.Context()
	var steps, found, best, unknown int64
	for b.Loop() {
		b.StopTimer()
		cache := newCache()
		a, err := f.celset(ctx, cache, allocator.WithShapes(f.shapes()))
		require.NoError(b, err)
		_, err = a.Allocate(ctx, f.nodes[0], claims)
		require.NoError(b, err)
		before := a.Stats()
		b.StartTimer()
		for _, node := range f.nodes[1:] {
			if _, err := a.Allocate(ctx, node, claims); err != nil {
				b.Fatal(err)
			}
		}
		after := a.Stats()
		steps, best, unknown = after.Steps-before.Steps, after.PreferencesBest-before.PreferencesBest, after.PreferencesBestFound-before.PreferencesBestFound
		found = best + unknown
	}
	nodes := float64(len(f.nodes) - 1)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/nodes, "ns/node")
	b.ReportMetric(float64(steps)/nodes, "steps/node")
	if found > 0 {
		b.ReportMetric(100*float64(best)/float64(found), "%best")
	}
}

// shapes are what others may ask for on this hardware.
func (f *fleet) shapes() []allocator.Shape {
	r := f.Requests[0]
	var shapes []allocator.Shape
	for _, count := range []int{r.Count, 2 * r.Count, r.Count / 2} {
		shapes = append(shapes, allocator.Shape{Class: r.Driver, Constraint: "shape", Count: count})
	}
	return shapes
}

// withShape defines the constraint of a scenario in its class.
func withShape(b *testing.B, classes []*resourceapi.DeviceClass, s shape.Scenario) classList {
	claim, err := s.Claim()
	require.NoError(b, err)
	class := classes[0].DeepCopy()
	class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: claim.Spec.Devices.Config[0].DeviceConfiguration})
	return append(classList{class}, classes[1:]...)
}

func configured(b *testing.B, preference *v1alpha1.CELDevicePreference) resourceapi.DeviceConfiguration {
	p := *preference
	p.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.PreferenceKind}
	p.Name = "preferred"
	raw, err := json.Marshal(p)
	require.NoError(b, err)
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw}}}
}
