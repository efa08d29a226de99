// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// What is kept of many nodes, many claims and many sets is said to take about what it takes.
func TestCacheTakesWhatIsSaid(t *testing.T) {
	for name, fill := range map[string]func(*fleet){
		"hardware with few attributes":  func(f *fleet) { f.addDifferentNodes(100, 2) },
		"hardware with many attributes": func(f *fleet) { f.addDifferentNodes(40, 28) },
		"selectors": func(f *fleet) {
			f.addNode(slice("1", ring(64)...))
			for n := range 100 {
				f.addPod(claim("c").want("x", 2, fmt.Sprintf("%s != %d", index, n)).cel("row").define("row", indices+".sum() >= 0"))
			}
		},
		"tables of numbers": func(f *fleet) {
			f.addNode(slice("1", ring(64)...))
			for n := range 40 {
				f.addPod(claim("c").want("x", 6).cel("sum").define("sum", fmt.Sprintf("%s.sum() == %d", indices, 200+n)))
			}
		},
		"tables of pairs": func(f *fleet) {
			f.addNode(slice("1", mesh(8, 8)...))
			for n := range 40 {
				f.addPod(claim("c").want("x", 4).cel("grid").define("grid", fmt.Sprintf("%s && %d == %d", neighbors, n, n)))
			}
		},
		"texts": func(f *fleet) {
			f.addNode(slice("1", ring(64)...))
			for n := range 10 {
				text := "string(" + index + ") + '" + strings.Repeat(fmt.Sprint(n), 2000) + "'"
				f.addPod(claim("c").want("x", 4).cel("text").define("text", "devices.map(d, "+strings.ReplaceAll(text, "device.", "d.")+").distinct().size() == 4"))
			}
		},
		"verdicts": func(f *fleet) {
			f.addNode(slice("1", ring(12)...))
			f.addPod(claim("c").want("x", 6).cel("late").define("late", "devices.slice(0, 1).all(d, d.attributes['mla.example.com'].index == 4)"))
		},
		"answers": func(f *fleet) {
			for n := range 1000 {
				node := f.addNode(slice("1", ring(12)...))
				for i := range 10 {
					if n>>i&1 != 0 {
						f.take(0, driver, node, fmt.Sprint("mla-", i))
					}
				}
			}
			f.addPod(claim("c").want("x", 2).cel("row").define("row", inARow))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(1)
			f.classes[driver] = classOf(driver)
			fill(f)
			// What is compiled is kept by what was read only.
			environment, err := device.NewEnvironment(cel.Config{CacheBytes: 1})
			require.NoError(t, err)
			ask := func(cache *Cache) {
				a := f.allocator(t, 0, WithCache(cache), WithEnvironment(environment), WithReasons())
				for _, q := range f.questions() {
					f.ask(t.Context(), a, q)
				}
			}
			ask(NewCache()) // what is compiled once is there
			readings.Forget()
			// What nodes have is not in the memory of the cache.
			cache := NewCache()
			for _, node := range f.nodes {
				_, err := f.allocator(t, 0, WithCache(cache)).inventoryOf(node)
				require.NoError(t, err)
			}
			before := heap()
			ask(cache)
			taken, said := heap()-before, cache.Used()+readings.Used()
			t.Logf("%d bytes are said (%d of them read), %d are taken", said, readings.Used(), taken)
			t.Logf("contents %d, views %d, selections %d, tables %d, verdicts %d, answers %d, kinds %d",
				cache.contents.Len(), cache.views.Len(), cache.selections.Len(), cache.tables.Len(), cache.verdicts.Len(), cache.answers.Len(), cache.symmetries.Len())
			require.Less(t, taken, 2*said)
			// What was read is in both, as each of them may keep it alive.
			require.Greater(t, 2*taken, said-readings.Used())
			runtime.KeepAlive(cache)
			runtime.KeepAlive(f)
		})
	}
}

// addDifferentNodes adds nodes with 16 devices of which no two are the same to a claim that
// reads all attributes, and such a claim.
func (f *fleet) addDifferentNodes(nodes, attributes int) {
	for n := range nodes {
		f.addNode(slice("1", wide(16, attributes, n)...))
	}
	f.addPod(claim("c").want("x", 16).cel("row").define("row", inARow+" && devices.all(d, d.attributes[d.driver].index >= 0)"))
}

// wide are devices with that many attributes besides an index, whose values no other node has.
func wide(devices, attributes, node int) []resourceapi.Device {
	result := ring(devices)
	for i := range result {
		for a := range attributes {
			result[i].Attributes[resourceapi.QualifiedName(fmt.Sprint("attribute-", a))] =
				resourceapi.DeviceAttribute{StringValue: ptr.To(fmt.Sprint("value-", node, "-", i))}
		}
	}
	return result
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}
