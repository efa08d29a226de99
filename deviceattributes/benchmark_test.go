// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
)

const benchmarkNodes = 1000

// largeCluster returns the slices of 1,000 nodes with 16 devices each, and an object with 1,024 rows for a part of these devices
// and two expressions for all of them.
func largeCluster() ([]*resourceapi.ResourceSlice, labelsOf, *v1alpha1.DeviceAttributes) {
	nodes := labelsOf{}
	var slices []*resourceapi.ResourceSlice
	for i := range benchmarkNodes {
		name := fmt.Sprintf("node-%04d", i)
		nodes[name] = map[string]string{"rack": fmt.Sprint("r", i/16)}
		slice := chips(name, 16)
		for d := range slice.Spec.Devices {
			slice.Spec.Devices[d].Attributes["serial"] = text(fmt.Sprint("serial-", i*16+d))
		}
		slices = append(slices, slice)
	}
	o := object("grid", computed("rack", "node.labels['rack']"), computed("x", "device.attributes['chip.example.com'].index % 4"))
	for i := range v1alpha1.MaxAttributeRows {
		row(fmt.Sprint("serial-", i), values{"y": integer(int64(i)), "links": {StringValues: []string{"a", "b"}}})(&o.Spec)
	}
	o.Spec.Table.Key = driver + "/serial"
	return slices, nodes, o
}

func enrichLarge(b *testing.B, e *deviceattributes.Enricher, slices []*resourceapi.ResourceSlice, nodes labelsOf) {
	_, report, err := e.Enrich(b.Context(), slices, nodes.get)
	require.NoError(b, err)
	require.Equal(b, 2*16*benchmarkNodes+2*1024, report.Objects[0].Attributes)
}

func BenchmarkUnchanged(b *testing.B) {
	slices, nodes, o := largeCluster()
	e := newEnricher(b, o)
	enrichLarge(b, e, slices, nodes)
	for b.Loop() {
		enrichLarge(b, e, slices, nodes)
	}
}

func BenchmarkOneSliceChanged(b *testing.B) {
	slices, nodes, o := largeCluster()
	e := newEnricher(b, o)
	enrichLarge(b, e, slices, nodes)
	for b.Loop() {
		slices[7] = slices[7].DeepCopy()
		enrichLarge(b, e, slices, nodes)
	}
}

// BenchmarkObjectChanged includes the check of the object and the compilation of its expressions, which the cache has.
func BenchmarkObjectChanged(b *testing.B) {
	slices, nodes, o := largeCluster()
	e := newEnricher(b, o)
	for b.Loop() {
		o = o.DeepCopy()
		o.Generation++
		*o.Spec.Table.Rows[0].Values["y"].IntValue++
		require.NoError(b, e.Set(b.Context(), []*v1alpha1.DeviceAttributes{o}))
		enrichLarge(b, e, slices, nodes)
	}
}

// BenchmarkNoObject shows that the feature costs nothing if it is not used.
func BenchmarkNoObject(b *testing.B) {
	slices, nodes, _ := largeCluster()
	e := newEnricher(b)
	for b.Loop() {
		_, _, err := e.Enrich(b.Context(), slices, nodes.get)
		require.NoError(b, err)
	}
}
