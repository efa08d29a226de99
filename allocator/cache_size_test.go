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

	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// A cache with many nodes, claims and sets reports a size close to the memory that it uses.
func TestReportedCacheSize(t *testing.T) {
	for name, fill := range map[string]func(*fleet){
		"hardware with few attributes":  func(f *fleet) { f.addDifferentNodes(100, 2) },
		"hardware with many attributes": func(f *fleet) { f.addDifferentNodes(40, 28) },
		"selectors": func(f *fleet) {
			f.addNode(slice("1", ring(64)...))
			for n := range 100 {
				f.addPod(claim("c").Want("x", 2, fmt.Sprintf("%s != %d", index, n)).Cel("row").Define("row", indices+".sum() >= 0"))
			}
		},
		"tables of numbers": func(f *fleet) {
			f.addNode(slice("1", ring(64)...))
			for n := range 40 {
				f.addPod(claim("c").Want("x", 6).Cel("sum").Define("sum", fmt.Sprintf("%s.sum() == %d", indices, 200+n)))
			}
		},
		"tables of pairs": func(f *fleet) {
			f.addNode(slice("1", mesh(8, 8)...))
			for n := range 40 {
				f.addPod(claim("c").Want("x", 4).Cel("grid").Define("grid", fmt.Sprintf("%s && %d == %d", neighbors, n, n)))
			}
		},
		"texts": func(f *fleet) {
			f.addNode(slice("1", ring(64)...))
			for n := range 10 {
				text := "string(" + index + ") + '" + strings.Repeat(fmt.Sprint(n), 2000) + "'"
				f.addPod(claim("c").Want("x", 4).Cel("text").Define("text", "devices.map(d, "+strings.ReplaceAll(text, "device.", "d.")+").distinct().size() == 4"))
			}
		},
		"verdicts": func(f *fleet) {
			f.addNode(slice("1", ring(12)...))
			f.addPod(claim("c").Want("x", 6).Cel("late").Define("late", "devices.slice(0, 1).all(d, d.attributes['mla.example.com'].index == 4)"))
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
			f.addPod(claim("c").Want("x", 2).Cel("row").Define("row", inARow))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(1)
			f.classes[driver] = classOf(driver)
			fill(f)
			// Only the analyses keep compiled expressions alive, because the environment's cache is tiny.
			environment, err := device.NewEnvironment(cel.Config{CacheBytes: 1})
			require.NoError(t, err)
			ask := func(cache *Cache) {
				a := f.allocator(t, 0, WithCache(cache), WithEnvironment(environment), WithReasons())
				for _, q := range f.questions() {
					f.ask(t.Context(), a, q)
				}
			}
			ask(NewCache()) // create the results that the process creates only once
			definition.Analyses.Forget()
			// Load the inventories of all nodes first, so that their memory is not attributed to the cache.
			cache := NewCache()
			for _, node := range f.nodes {
				_, err := f.allocator(t, 0, WithCache(cache)).planner.InventoryOf(node)
				require.NoError(t, err)
			}
			before := heap()
			ask(cache)
			taken, said := heap()-before, cache.Used()+definition.Analyses.Used()
			t.Logf("%d bytes are said (%d of them read), %d are taken", said, definition.Analyses.Used(), taken)
			require.Less(t, taken, 2*said)
			// An analysis is counted by the cache and by the process-wide memory of analyses. Each may keep it alive.
			require.Greater(t, 2*taken, said-definition.Analyses.Used())
			runtime.KeepAlive(cache)
			runtime.KeepAlive(f)
		})
	}
}

// A frequently used table stays in the cache longer than the view that it was made from, and keeps the devices of the view
// alive. A cache that did not count these devices used several times its limit.
func TestTablesCountTheDevicesThatTheyKeep(t *testing.T) {
	const limit, nodes, every = 4 << 20, 60, 4
	f := newFleet(1 + nodes/every)
	f.classes[driver] = classOf(driver)
	for n := range nodes {
		node := f.addNode(slice("1", wide(32, 28, n)...))
		for cycle := range f.cycles {
			for i := range 4 {
				if cycle>>i&1 != 0 {
					f.take(cycle, driver, node, fmt.Sprint("mla-", i))
				}
			}
		}
	}
	f.addPod(claim("c").Want("x", 4).Cel("sum").Define("sum", indices+".sum() >= 0 && devices.all(d, d.attributes[d.driver].index >= 0)"))
	cache := NewCache(CacheBytes(limit))
	var allocators []*Allocator
	for cycle := range f.cycles {
		allocators = append(allocators, f.allocator(t, cycle, WithCache(cache)))
	}
	for n := range f.nodes {
		_, err := allocators[0].planner.InventoryOf(f.nodes[n])
		require.NoError(t, err)
	}
	f.ask(t.Context(), allocators[0], question{})
	before := heap()
	for n := range nodes {
		f.ask(t.Context(), allocators[0], question{node: n})
		if (n+1)%every != 0 {
			continue
		}
		// Different devices are in use now. So the cache has no result for the claims, but it has the tables.
		for known := range n {
			f.ask(t.Context(), allocators[(n+1)/every], question{node: known})
		}
	}
	taken := heap() - before
	t.Logf("%d bytes are said, %d are taken", cache.Used(), taken)
	require.Less(t, taken, int64(limit+limit/2))
	runtime.KeepAlive(allocators)
}

// addDifferentNodes adds nodes with 16 devices each, and a claim that reads all attributes. No two devices are equal.
func (f *fleet) addDifferentNodes(nodes, attributes int) {
	for n := range nodes {
		f.addNode(slice("1", wide(16, attributes, n)...))
	}
	f.addPod(claim("c").Want("x", 16).Cel("row").Define("row", inARow+" && devices.all(d, d.attributes[d.driver].index >= 0)"))
}

// wide returns devices with an index and the given number of further attributes. The values differ on each node.
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

// A tenant can create any number of claims with different expressions of the maximum size, attributes, selectors and devices in
// use. The cache and the process then stay within their memory limits, and other tenants get the same results as before.
func TestFloodOfClaims(t *testing.T) {
	const limit, compiled = 8 << 20, 4 << 20
	rounds := cases.Of(30, 300)
	environment, err := device.NewEnvironment(cel.Config{CacheBytes: compiled})
	require.NoError(t, err)
	cache := NewCache(CacheBytes(limit))
	quiet := mixedFleet()
	questions := quiet.questions()
	want := make([]response, len(questions))
	askAll := func(check func(int, response)) {
		a := quiet.allocator(t, 0, WithCache(cache), WithEnvironment(environment))
		for i, q := range questions {
			check(i, quiet.ask(t.Context(), a, q))
		}
	}
	askAll(func(i int, got response) { want[i] = got })

	hostile := newFleet(1)
	hostile.classes[driver] = classOf(driver)
	for n := range 4 {
		hostile.addNode(slice("1", wide(64, 12, n)...))
	}
	padding := strings.Repeat("devices.all(d, d.driver != 'none') && ", 60)
	for n := range rounds {
		attribute := fmt.Sprintf("attribute_%d", n%12)
		text := fmt.Sprintf("%s devices.all(d, has(d.attributes['mla.example.com'].index) && d.attributes['mla.example.com']['%s'] != '%d') && "+
			"devices.map(d, string(d.attributes['mla.example.com'].index) + '%s').distinct().size() == 3", padding, attribute, n, strings.Repeat("x", 500))
		hostile.addPod(claim("c").Want("x", 3, fmt.Sprintf("%s != %d", index, n)).Cel("set").Define("set", text))
	}
	before := heap()
	said := int64(0)
	for _, q := range hostile.questions() {
		// Use one allocator for each claim, like a scheduler, because an allocator stores data for its claims.
		asked := hostile.allocator(t, 0, WithCache(cache), WithEnvironment(environment), WithReasons())
		hostile.ask(t.Context(), asked, q)
		require.LessOrEqual(t, cache.Used(), int64(limit))
		require.LessOrEqual(t, definition.Analyses.Used(), int64(definition.AnalysisBytes))
		said = max(said, cache.Used())
	}
	taken := heap() - before
	t.Logf("%d bytes are taken, %d are said", taken, said)
	require.Greater(t, said, int64(limit/2), "it is a flood")
	require.Less(t, taken, int64(limit+compiled+definition.AnalysisBytes)+64<<20)
	require.Less(t, taken, 2*(cache.Used()+definition.Analyses.Used())+2*compiled)
	askAll(func(i int, got response) { quiet.requireSame(t, questions[i], want[i], got) })
	runtime.KeepAlive(hostile)
}
