// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel/device"
)

// Evaluating a set copies nothing of its devices: the allocations do not depend
// on how many attributes a device has.
func TestAllocationsDoNotGrowWithAttributes(t *testing.T) {
	allocations := func(attributesPerDevice int) float64 {
		devices := make([]*device.Device, 4)
		for i := range devices {
			a := attributes{"index": i}
			for j := 1; j < attributesPerDevice; j++ {
				a[resourceapi.QualifiedName(fmt.Sprintf("other%d", j))] = "value"
			}
			devices[i] = newDevice(a)
		}
		expression := compile(t, ringExpression)
		return testing.AllocsPerRun(100, func() {
			verdict, err := expression.Satisfied(t.Context(), devices, nil)
			require.True(t, verdict && err == nil)
		})
	}
	require.InDelta(t, allocations(1), allocations(32), 1)
}

func BenchmarkKEP(b *testing.B) {
	rings, grids := ring(8), mesh(3, 3)
	for _, benchmark := range []struct {
		name       string
		expression string
		devices    []*device.Device
		want       bool
	}{
		{"ring/true", ringExpression, pick(rings, 2, 3, 4, 5), true},
		{"ring/false", ringExpression, pick(rings, 2, 3, 4, 7), false},
		{"grid/true", gridExpression, pick(grids, 0, 1, 3, 4), true},
		{"grid/false", gridExpression, pick(grids, 0, 2, 6, 8), false},
	} {
		b.Run(benchmark.name, func(b *testing.B) {
			expression := compile(b, benchmark.expression)
			b.ReportAllocs()
			for b.Loop() {
				verdict, err := expression.Satisfied(b.Context(), benchmark.devices, nil)
				if err != nil || verdict != benchmark.want {
					b.Fatal(verdict, err)
				}
			}
		})
	}
}
