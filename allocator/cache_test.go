// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator/internal/answer"
	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/plan"
)

// mixedFleet returns nodes of several hardware types with equal and different devices in use, nodes whose results are not
// cached, and pods with all kinds of claims.
func mixedFleet() *fleet {
	f := newFleet(1)
	f.classes[driver] = classOf(driver)
	add := func(inUse []string, slices ...*sliceBuilder) {
		node := f.addNode(slices...)
		for _, device := range inUse {
			f.take(0, driver, node, device)
		}
	}
	for range 2 {
		for _, inUse := range [][]string{nil, {"mla-1"}, {"mla-0", "mla-4"}, {"mla-1", "mla-3", "mla-5"}} {
			add(inUse, slice("1", ring(8)...))
			add(inUse, slice("1", ring(7)...))
			add(inUse, partitioned("3Gi", part("mla-0", "1Gi"), part("mla-1", "1Gi"), part("mla-2", "2Gi"), part("mla-3", "1Gi"))...)
		}
		for _, inUse := range [][]string{nil, {"mla-11"}, {"mla-00", "mla-12"}} {
			add(inUse, slice("1", mesh(3, 3)...))
		}
	}
	f.addPod(claim("row").Want("x", 4).Cel("row").Define("row", inARow))
	f.addPod(claim("grid").Want("x", 4).Cel("grid").Define("grid", neighbors))
	f.addPod(claim("sum").Want("x", 1, "has("+index+")").Want("y", 2).Cel("sum").Define("sum", indices+".sum() >= 9"))
	f.addPod(claim("unread").Want("x", 3).Cel("late").Define("late", "devices.slice(1, 2).size() == 2"))
	f.addPod(claim("broken").Want("x", 2).Cel("broken").Define("broken", "1 / ("+indices+".min() - 2) < 0"))
	f.addPod(
		claim("a").FirstAvailable("x", sub("six", 6), sub("two", 2)).Cel("row").Define("row", inARow),
		claim("b").Want("y", 2, index+" % 2 == 0").Cel("far").Define("far", width("index")+" > 3"),
	)
	f.addPod(claim("none").Want("x", 2))
	return f
}

// width returns the expression for the difference between the maximum and minimum of an attribute.
func width(attribute string) string {
	values := "devices.map(d, d.attributes['mla.example.com']." + attribute + ")"
	return values + ".max() - " + values + ".min()"
}

// Concurrent calls with one Cache return the same results as separate searches, with exactly the work of sequential calls.
func TestCacheIsForManyAtATime(t *testing.T) {
	f := mixedFleet()
	questions := f.questions()
	want := make([]response, len(questions))
	reference := f.allocator(t, 0, WithExhaustiveSearch())
	for i, q := range questions {
		want[i] = f.ask(t.Context(), f.allocator(t, 0), q)
		f.requireSame(t, q, f.ask(t.Context(), reference, q).withoutReason(), want[i].withoutReason())
	}
	sequential := NewCache()
	one := f.allocator(t, 0, WithCache(sequential))
	for i, q := range questions {
		f.requireSame(t, q, want[i], f.ask(t.Context(), one, q))
	}
	cold := one.Stats()
	require.Positive(t, cold.TableEvaluations)
	require.Positive(t, cold.CacheHits)
	for i, q := range questions {
		f.requireSame(t, q, want[i], f.ask(t.Context(), one, q))
	}
	warm := minus(one.Stats(), cold)
	require.Zero(t, warm.TableEvaluations, "each entry is evaluated once")
	require.Zero(t, warm.TableBuilds)
	require.Less(t, warm.Steps, cold.Steps)

	for round := range 3 {
		shared := NewCache()
		for _, expected := range []Stats{cold, warm} {
			// Use three allocators, like a scheduler with several profiles.
			allocators := []*Allocator{f.allocator(t, 0, WithCache(shared)), f.allocator(t, 0, WithCache(shared)), f.allocator(t, 0, WithCache(shared))}
			got := make([]response, len(questions))
			order := rand.New(rand.NewPCG(uint64(round), 0)).Perm(len(questions))
			var next atomic.Int64
			var group sync.WaitGroup
			for worker := range 12 {
				group.Go(func() {
					for n := int(next.Add(1)) - 1; n < len(questions); n = int(next.Add(1)) - 1 {
						i := order[n]
						got[i] = f.ask(t.Context(), allocators[(worker+n)%3], questions[i])
					}
				})
			}
			group.Wait()
			for i, q := range questions {
				f.requireSame(t, q, want[i], got[i])
			}
			var sum Stats
			for _, a := range allocators {
				sum = answer.Sum(sum, a.Stats())
			}
			require.Equal(t, expected, sum)
		}
	}
}

func (f *fleet) requireSame(t *testing.T, q question, want, got response) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return // much faster than cmp.Diff
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(response{})); diff != "" {
		require.Fail(t, diff, f.describe(0, q))
	}
}

func minus(s, o Stats) Stats {
	return answer.Sum(s, Stats{
		Steps: -o.Steps, Evaluations: -o.Evaluations, SetsAccepted: -o.SetsAccepted, SetsProven: -o.SetsProven,
		TableEvaluations: -o.TableEvaluations, TableBuilds: -o.TableBuilds, Cost: -o.Cost, CacheHits: -o.CacheHits,
		AnswersKnown: -o.AnswersKnown, Cuts: -o.Cuts,
		PreferencesBest: -o.PreferencesBest, PreferencesBestFound: -o.PreferencesBestFound,
	})
}

// An allocator without the option WithCache creates a Cache that no other allocator uses.
func TestAllocatorsHaveACacheOfTheirOwn(t *testing.T) {
	s := rowOfThree()
	a, b := s.allocator(t), s.allocator(t)
	require.NotSame(t, a.planner.Cache, b.planner.Cache)
	for range 2 {
		before := b.Stats()
		_, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		require.NoError(t, err)
		require.Equal(t, before, b.Stats())
	}
	require.EqualValues(t, 1, a.Stats().CacheHits)
	_, err := b.Allocate(t.Context(), s.OnNode(), s.APIClaims())
	require.NoError(t, err)
	require.Zero(t, b.Stats().CacheHits)
	require.Equal(t, a.Stats().TableEvaluations, b.Stats().TableEvaluations)
}

// If a Cache evicts results because it is full, the results are computed again.
func TestCacheIsBounded(t *testing.T) {
	const nodes, limit = 200, 64 << 10
	f := newFleet(1)
	f.classes[driver] = classOf(driver)
	for n := range nodes {
		devices := ring(3)
		devices[2] = newDevice("mla-2", attrs{"index": 2, "serial": n})
		f.addNode(slice("1", devices...))
	}
	f.addPod(claim("c").Want("x", 2).Cel("row").
		Define("row", indices+".sum() == 3 && devices.exists(d, has(d.attributes['mla.example.com'].serial))"))
	used := int64(0)
	ask := func(cache *Cache) {
		a := f.allocator(t, 0, WithCache(cache))
		for range 2 {
			for _, q := range f.questions() {
				got := f.ask(t.Context(), a, q)
				require.Equal(t, []string{"x=mla-1", "x=mla-2"}, devicesOf(got.Results))
				used = max(used, cache.Used())
			}
		}
	}
	for _, bytes := range []int64{0, limit} {
		ask(NewCache(CacheBytes(bytes)))
		require.LessOrEqual(t, used, bytes)
	}
	ask(NewCache())
	require.Greater(t, used, int64(2*limit), "there is too much for a small one")
}

// Refusals.Has returns true if and only if Allocate returns a refusal without a search. It returns false before the first
// search, and always for claims without CEL constraints.
func TestRefusalsAreCachedRefusals(t *testing.T) {
	f := mixedFleet()
	a := f.allocator(t, 0, WithCache(NewCache()))
	requireKnown := func(forMany bool) (known int) {
		for _, pod := range f.pods {
			refusals := a.RefusalsOf(pod)
			if refusals == nil {
				require.Nil(t, a.planner.Resolved(pod[0]))
				continue
			}
			if forMany {
				refusals.ForMany()
			}
			for _, node := range f.nodes {
				isKnown := refusals.Has(node)
				_, stats, err := a.AllocateWithStats(t.Context(), node, pod)
				require.Equal(t, isKnown, err != nil && stats.AnswersKnown == 1 && stats.Steps == 0)
				if isKnown {
					require.ErrorIs(t, err, structured.ErrFailedAllocationOnNode)
					known++
				}
			}
		}
		return known
	}
	cold := requireKnown(false)
	warm := requireKnown(false)
	require.Greater(t, warm, cold)
	require.Equal(t, warm, requireKnown(true))
}

// Refusals.Has does not create cache entries.
func TestRefusalsLeaveNothingBehind(t *testing.T) {
	f := mixedFleet()
	cache := NewCache()
	a := f.allocator(t, 0, WithCache(cache))
	for _, pod := range f.pods {
		if refusals := a.RefusalsOf(pod); refusals != nil {
			for _, node := range f.nodes {
				require.False(t, refusals.Has(node))
			}
		}
	}
	require.Zero(t, cache.Used())
}

// All nodes without slices share one empty inventory.
func TestInventoriesOfNothing(t *testing.T) {
	a := given(t, "devices 3 mla-# index=#").allocator(t)
	none, err := a.planner.InventoryOf(newNode("another"))
	require.NoError(t, err)
	require.Empty(t, none.Candidates)
	other, err := a.planner.InventoryOf(newNode("other"))
	require.NoError(t, err)
	require.Same(t, none, other)
}

// A cached refusal has the same error as the search that found it.
func TestKnownRefusal(t *testing.T) {
	tight := rowOfThree()
	tight.InUse = []string{"mla-1", "mla-4"}
	s := tight.with(WithCache(NewCache()))
	for _, want := range []bool{false, true} {
		a := s.allocator(t)
		on, err := a.planner.PlanFor(s.APIClaims()).On(newNode(nodeName))
		require.NoError(t, err)
		kept := on.AnswerEntry()
		require.Equal(t, want, plan.KnownRefusal(kept) != nil)
		results, err := a.Allocate(t.Context(), newNode(nodeName), s.APIClaims())
		require.NoError(t, err)
		require.Nil(t, results)
	}
}

// changing is a class lister. Its class changes or disappears after a number of look-ups.
type changing struct {
	classes
	left          atomic.Int64
	before, after *resourceapi.DeviceClass
}

func (c *changing) Get(name string) (*resourceapi.DeviceClass, error) {
	switch {
	case name != c.before.Name:
		return c.classes.Get(name)
	case c.left.Add(-1) >= 0:
		return c.before, nil
	case c.after == nil:
		return c.classes.Get(name)
	default:
		return c.after, nil
	}
}

func newChanging(before, after *resourceapi.DeviceClass, left int64) *changing {
	c := &changing{before: before, after: after}
	c.left.Store(left)
	return c
}

// If a class changes and changes back, no wrong result is cached. Each attempt uses and caches one version of the class.
func TestClassesThatChange(t *testing.T) {
	s := rowOfThree()
	before, after := classOf(driver), classOf(driver, index+" > 1")
	devices := map[*resourceapi.DeviceClass][]string{
		before: {"mla=mla-0", "mla=mla-1", "mla=mla-2"},
		after:  {"mla=mla-2", "mla=mla-3", "mla=mla-4"},
	}
	// ask allocates claims on two nodes with one allocator.
	ask := func(cache *Cache, lister *changing) [][]string {
		s.Slices = []*sliceBuilder{slice("1", ring(6)...), slice("2", ring(6)...).OnNode("node-2").Pool("pool-2", 1, 1)}
		a := s.with(WithCache(cache)).allocator(t)
		a.planner.Classes.DeviceClassLister = lister
		var got [][]string
		for _, node := range []string{nodeName, "node-2"} {
			results, err := a.Allocate(t.Context(), newNode(node), s.APIClaims())
			require.NoError(t, err)
			got = append(got, devicesOf(results))
		}
		return got
	}
	for asked := range int64(12) {
		cache := NewCache()
		got := ask(cache, newChanging(before, after, asked))
		seen := before
		if asked == 0 {
			seen = after
		}
		require.Equal(t, [][]string{devices[seen], devices[seen]}, got, "changed after %d", asked)
		for _, class := range []*resourceapi.DeviceClass{before, after, before} {
			require.Equal(t, [][]string{devices[class], devices[class]}, ask(cache, newChanging(class, class, 0)), "changed after %d", asked)
		}
	}
}

func TestClassesThatGo(t *testing.T) {
	s := rowOfThree()
	for asked := range int64(6) {
		a := s.allocator(t)
		a.planner.Classes.DeviceClassLister = newChanging(classOf(driver), nil, asked)
		results, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		if asked == 0 {
			require.ErrorContains(t, err, driver)
			continue
		}
		require.NoError(t, err, "it was there when it was asked for first")
		require.Equal(t, []string{"mla=mla-0", "mla=mla-1", "mla=mla-2"}, devicesOf(results))
	}
}

// An allocator fails while a class is missing. A new allocator uses a class that was created later.
func TestClassesThatCome(t *testing.T) {
	lister := classes{}
	seen := &definition.Classes{DeviceClassLister: lister}
	_, err := seen.Get("late")
	require.Error(t, err)
	late := classOf("late")
	lister["late"] = late
	got, err := seen.Get("late")
	require.NoError(t, err)
	require.Same(t, late, got)
	lister["late"] = classOf("late", "false")
	got, err = seen.Get("late")
	require.NoError(t, err)
	require.Same(t, late, got)
}
