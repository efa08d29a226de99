// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memo

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

// kilobyte is a size function: each value takes a kilobyte.
func kilobyte[K comparable](K, *int) Size { return Size{Bytes: 1 << 10} }

func (m *Memo[K, V]) has(key K) bool {
	m.memory.mutex.Lock()
	defer m.memory.mutex.Unlock()
	return m.entries[key] != nil
}

// TestOldestGoesFirst tests that a full memory drops the least recently used entry of all kinds.
func TestOldestGoesFirst(t *testing.T) {
	memory := New(0)
	numbers, texts := In(memory, kilobyte[int]), In(memory, kilobyte[string])
	memory.limit = 5 * int64(1<<10+max(numbers.entryBytes, texts.entryBytes))
	note := NewSlot[int](memory)
	numbers.Get(1, func() int { return 1 })
	texts.Get("a", func() int { return 2 })
	note.Keep(new(3), Size{Bytes: 1 << 10})
	numbers.Get(4, func() int { return 4 })
	require.Equal(t, 1, numbers.Get(1, nil), "it was kept, and is the newest again")

	texts.Get("b", func() int { return 5 })
	require.True(t, texts.has("a"), "there was room for five")
	texts.Get("c", func() int { return 6 })
	require.False(t, texts.has("a"))
	require.Equal(t, 3, *note.Look())
	texts.Get("d", func() int { return 7 })
	require.False(t, numbers.has(4))
	require.Equal(t, 3, *note.Look(), "it was looked at")
	texts.Get("e", func() int { return 8 })
	require.False(t, numbers.has(1))
	require.Equal(t, 9, numbers.Get(1, func() int { return 9 }), "it is found out again")
	require.LessOrEqual(t, memory.Used(), memory.Limit())
}

// TestSlots tests that the size of a value in a slot no longer counts after the value was replaced.
func TestSlots(t *testing.T) {
	memory := New(1 << 20)
	s := NewSlot[string](memory)
	require.Nil(t, s.Look())
	require.Zero(t, memory.Used(), "nothing is kept yet")
	s.Keep(new("one"), Size{Bytes: 1000})
	first := memory.Used()
	require.Greater(t, first, int64(1000))
	s.Keep(new("two"), Size{Bytes: 1000})
	require.Equal(t, first, memory.Used())
	require.Equal(t, "two", *s.Look())
	s.Forget()
	s.Forget()
	require.Nil(t, s.Look())
	require.Zero(t, memory.Used())
	s.Keep(new("three"), Size{Bytes: 1 << 20})
	require.Nil(t, s.Look(), "it is too large")
	require.Zero(t, memory.Used())
}

func TestValuesGrow(t *testing.T) {
	memory := New(64 << 10)
	numbers := In(memory, flat[int, int])
	first, second := numbers.At(1), numbers.At(2)
	require.Equal(t, int64(2*numbers.entryBytes), memory.Used())
	second.Grow(10 << 10)
	require.Equal(t, int64(2*numbers.entryBytes)+10<<10, memory.Used())
	first.Grow(20 << 10)
	require.False(t, numbers.has(1), "too large for a fourth of the memory")
	require.True(t, numbers.has(2))
	before := memory.Used()
	first.Grow(1 << 10)
	require.Equal(t, before, memory.Used(), "what is not kept does not count")
	for n := range 10 {
		numbers.At(10 + n).Grow(10 << 10)
		require.LessOrEqual(t, memory.Used(), memory.Limit())
	}
	require.False(t, numbers.has(2), "what others grew by drove it out")
}

// check compares the counters of the memory with the stored elements.
func (m *Memory) check(t require.TestingT, entries int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var used int64
	holders, kept := map[any]int{}, 0
	for e := m.ends.next; e != &m.ends; e = e.next {
		require.Same(t, e, e.next.previous)
		kept++
		used += e.bytes
		for _, part := range e.parts {
			holders[part.Of]++
		}
	}
	require.Len(t, m.parts, len(holders))
	for of, part := range m.parts {
		require.Equal(t, holders[of], part.holders)
		used += part.bytes
	}
	require.Equal(t, used, m.used)
	require.LessOrEqual(t, m.used, m.limit)
	require.Equal(t, entries, kept)
}

// TestBoundHoldsUnderRandomUse tests that the limit holds and the counters are right after any sequence of calls.
func TestBoundHoldsUnderRandomUse(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		memory := New(rapid.Int64Range(0, 20<<10).Draw(t, "limit"))
		common := []Part{{Of: 1, Bytes: 500}, {Of: 2, Bytes: 3000}, {Of: "x", Bytes: 0}}
		size := Size{}
		numbers := In(memory, func(int, *int) Size { return size })
		texts := In(memory, func(string, *string) Size { return size })
		slots := []*Slot[int]{NewSlot[int](memory), NewSlot[int](memory)}
		entries := []*Entry[int, int]{}
		count := func() int {
			filled := 0
			for _, s := range slots {
				if s.value.Load() != nil {
					filled++
				}
			}
			return numbers.Len() + texts.Len() + filled
		}
		draw := func(t *rapid.T) {
			size = Size{Bytes: rapid.IntRange(0, 6000).Draw(t, "bytes")}
			for _, part := range common {
				if rapid.Bool().Draw(t, "has") {
					size.Parts = append(size.Parts, part)
				}
			}
		}
		key := rapid.IntRange(0, 9)
		t.Repeat(map[string]func(*rapid.T){
			"number": func(t *rapid.T) {
				draw(t)
				n := key.Draw(t, "key")
				require.Equal(t, n*n, numbers.Get(n, func() int { return n * n }))
			},
			"text": func(t *rapid.T) {
				draw(t)
				n := fmt.Sprint(key.Draw(t, "key"))
				require.Equal(t, n+n, texts.Get(n, func() string { return n + n }))
			},
			"at": func(t *rapid.T) { entries = append(entries, numbers.At(key.Draw(t, "key"))) },
			"failure": func(t *rapid.T) {
				e := numbers.At(key.Draw(t, "key"))
				_, known, err := e.Find(t.Context(), func() (int, error) { return 0, errNotFound })
				require.Equal(t, known, err == nil)
			},
			"growth": func(t *rapid.T) {
				if len(entries) > 0 {
					rapid.SampledFrom(entries).Draw(t, "entry").Grow(rapid.IntRange(0, 4000).Draw(t, "bytes"))
				}
			},
			"slot": func(t *rapid.T) {
				draw(t)
				rapid.SampledFrom(slots).Draw(t, "slot").Keep(new(1), size)
			},
			"look": func(t *rapid.T) { rapid.SampledFrom(slots).Draw(t, "slot").Look() },
			"":     func(t *rapid.T) { memory.check(t, count()) },
		})
	})
}

// TestManyAtATime tests that the limit holds and the counters are right under concurrent calls, and that each caller gets the
// right value.
func TestManyAtATime(t *testing.T) {
	memory := New(16 << 10)
	part := Part{Of: "common", Bytes: 1 << 10}
	numbers := In(memory, func(int, *int) Size { return Size{Bytes: 300, Parts: []Part{part}} })
	slot := NewSlot[int](memory)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			for range 3000 {
				n := random.IntN(60)
				if got := numbers.Get(n, func() int { return n * n }); got != n*n {
					t.Errorf("%d: got %d", n, got)
				}
				if n < 5 {
					numbers.At(n).Grow(100)
					slot.Keep(&n, Size{})
				}
				if kept := slot.Look(); kept != nil && *kept >= 5 {
					t.Errorf("got %d", *kept)
				}
			}
		})
	}
	group.Wait()
	kept := numbers.Len()
	if slot.value.Load() != nil {
		kept++
	}
	memory.check(t, kept)
	require.Greater(t, kept, 5)
}

// TestEntriesTakeWhatIsCounted compares the counted memory of entries and keys with the measured memory, also after most
// entries were dropped.
func TestEntriesTakeWhatIsCounted(t *testing.T) {
	const entries = 100_000
	before := heap()
	memory := New(1 << 30)
	numbers := In(memory, flat[[4]uint64, uint64])
	fill := func(from, to int) {
		for n := from; n < to; n++ {
			numbers.Get([4]uint64{0, uint64(n)}, func() uint64 { return uint64(n) })
		}
	}
	requireHonest := func() {
		t.Helper()
		taken := heap() - before
		t.Logf("%d entries take %d bytes, counted are %d", numbers.Len(), taken, memory.Used())
		require.Less(t, taken, 2*memory.Used())
		require.Greater(t, taken, memory.Used()/2)
	}
	fill(0, entries)
	require.Equal(t, entries, numbers.Len())
	requireHonest()
	memory.limit = memory.used / 20
	fill(entries, entries+1)
	require.Less(t, numbers.Len(), entries/19)
	requireHonest()
	runtime.KeepAlive(numbers)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int64(memory.HeapAlloc)
}

// TestHasMakesNone tests that Has creates no entry, and that a call of Has counts as a use of the entry.
func TestHasMakesNone(t *testing.T) {
	memory := New(16 << 10)
	numbers := In(memory, kilobyte[int])
	require.Nil(t, numbers.Has(1))
	require.Zero(t, numbers.Len())
	numbers.Get(1, func() int { return 10 })
	numbers.Get(2, func() int { return 20 })
	require.Equal(t, 10, *numbers.Has(1).Look())
	for n := 3; numbers.has(2); n++ {
		numbers.Get(n, func() int { return n })
	}
	require.True(t, numbers.has(1), "it was used after 2 was")
}
