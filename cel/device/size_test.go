// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/corpus"
)

// TestReportedExpressionSize checks that the reported memory of an expression is close to its real memory, for usual and for
// very large expressions.
func TestReportedExpressionSize(t *testing.T) {
	tests := map[string]string{
		"constant":    "true",
		"short":       "devices.size() > 0",
		"conjuncts":   strings.Repeat("devices.size() > 0 && ", 150) + "true",
		"macros":      strings.Repeat("devices.all(d, d.driver == 'a') && ", 100) + "true",
		"attributes":  strings.Repeat("devices.all(d, d.attributes['m.x'].index == 1) && ", 100) + "true",
		"nested":      "devices.all(a, devices.all(b, devices.all(c, devices.all(d, a == b && c == d))))",
		"list":        "[" + strings.Repeat("1,", 5000) + "1].size() > 0",
		"map":         "{" + strings.Repeat("'a': 1,", 1000) + "'b': 2}.size() > 0",
		"text":        "'" + strings.Repeat("a", 10000) + "' == 'b'",
		"patterns":    strings.Repeat("'a'.matches('^(a|b)*$') || ", 360) + "true",
		"repetitions": strings.Repeat("'a'.matches('([ab]c){200}') || ", 10) + "true",
	}
	for i, e := range corpus.Expressions() {
		if i%20 == 0 {
			tests["corpus: "+e.Name] = e.Text
		}
	}
	environment, err := device.NewEnvironment(cel.Config{CacheBytes: 1 << 40})
	require.NoError(t, err)
	_, err = environment.Compile(t.Context(), "1 == 1 && 'a'.matches('b') && devices.exists(d, d.driver == 'c')")
	require.NoError(t, err)
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			const copies = 4
			before, said := heap(), 0
			for n := range copies {
				compiled, err := environment.Compile(t.Context(), text+strings.Repeat(" ", n))
				require.NoError(t, err)
				said += compiled.Size()
			}
			requireAbout(t, said/copies, (heap()-before)/copies)
		})
	}
	runtime.KeepAlive(environment)
}

// requireAbout requires that two sizes differ at most by a factor of two.
func requireAbout(t *testing.T, said, taken int) {
	t.Helper()
	t.Logf("%d bytes are said, %d are taken", said, taken)
	require.Less(t, taken, 2*said)
	require.Greater(t, 2*taken, said)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}

// TestAllocationsDoNotGrowWithAttributes checks that an evaluation does not copy devices: its number of allocations does not
// depend on the number of attributes.
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
