// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
)

// withLists returns n devices, each with lists of length texts of the given size. own means that no two devices share a text.
func withLists(n, length, size int, own bool) (all []*device.Device) {
	for i := range n {
		var list []string
		for j := range length {
			text := fmt.Sprintf("%0*d", size, j)
			if own {
				text = fmt.Sprintf("%0*d", size, i*length+j)
			}
			list = append(list, text)
		}
		if !own {
			k := i % length
			list = append(list[k:len(list):len(list)], list[:k]...)
		}
		all = append(all, device.New("d", &resourceapi.Device{Name: fmt.Sprint(i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"l": {StringValues: list}, "y": {IntValue: new(int64(i))}}}))
	}
	return all
}

// measured computes bounds for sets of four devices. It returns the time, the bytes in use (held) and the bytes that Grown
// reported.
func measured(ctx context.Context, t *testing.T, text string, all []*device.Device) (took time.Duration, held, counted int) {
	const size = 4
	f := compiled(t, environment(t), text)
	analysis := bound.Analyze(f.Expression, size)
	require.True(t, analysis.Affordable(all) && analysis.Fits(len(all)), text)
	tables := analysis.Tabulate(all)
	tables.Grown = func(bytes int) { counted += bytes }
	bounds := tables.NewBounds(ctx, cel.NewBudget(1<<40))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	p := bound.Partial{Chosen: bitset.New(len(all)), Domain: bitset.New(len(all)), Left: size - 1, Forced: bitset.New(len(all))}
	p.Chosen.Add(0)
	for i := 1; i < len(all); i++ {
		p.Domain.Add(i)
	}
	is := bounds.Infeasible(p, bound.Thorough)
	took = time.Since(begun)
	runtime.GC()
	runtime.ReadMemStats(&after)
	held = int(after.HeapAlloc) - int(before.HeapAlloc)
	t.Logf("%s: infeasible %t, exhausted %t, took %v, held %d KiB, counted %d KiB", text, is, bounds.Exhausted(), took, held>>10, counted>>10)
	runtime.KeepAlive(tables)
	return took, held, counted
}

// TestCountedMemoryOfLists checks that the counted memory of tables matches the memory in use and stays near the limit.
func TestCountedMemoryOfLists(t *testing.T) {
	for text, all := range map[string][]*device.Device{
		"devices.map(d, d.attributes['d'].l).flatten().distinct().size() == 3": withLists(2000, 64, 64, true),
		"devices.map(d, d.attributes['d'].l).distinct().size() == 3":           withLists(2000, 64, 5, false),
	} {
		_, held, counted := measured(t.Context(), t, text, all)
		require.Less(t, counted, 2*16<<20, text)
		if cases.Nightly() {
			// Other tests of the process may allocate memory, too, so allow twice the counted memory.
			require.Less(t, held, 2*counted, text)
		}
	}
}

// TestListsTakeTime checks that bounds end soon after their context has ended, for each comparison of lists.
func TestListsTakeTime(t *testing.T) {
	cases.OnlyNightly(t, "it measures time")
	for text, own := range map[string]bool{
		"devices.clique(a, b, sets.equivalent(a.attributes['d'].l, b.attributes['d'].l))":                      false,
		"devices.all(a, devices.all(b, a == b || !sets.intersects(a.attributes['d'].l, b.attributes['d'].l)))": true,
	} {
		t.Run(text, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			took, _, _ := measured(ctx, t, text, withLists(4000, 64, 64, own))
			require.Less(t, took, 6*time.Second)
		})
	}
}
