// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
)

// inParallel calls f in n goroutines that start together, and waits for them.
func inParallel(n int, f func(int)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	group.Wait()
}

func (r *recorder) misses() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	misses := 0
	for _, c := range r.compilations {
		if !c.hit {
			misses++
		}
	}
	return misses
}

func TestCompilationsAreRemembered(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed})
	require.Same(t, compile(t, environment, "n == 1"), compile(t, environment, "n == 1"))
	require.NotSame(t, compile(t, environment, "n == 1"), compile(t, environment, "n == 2"))

	_, first := environment.Compile(t.Context(), "n ==")
	_, second := environment.Compile(t.Context(), "n ==")
	require.Same(t, requireError(t, first, cel.ReasonInvalid), requireError(t, second, cel.ReasonInvalid))
	require.Equal(t, 3, observed.misses())
}

// What was not asked for for the longest time is forgotten when there is no room.
func TestCacheIsBounded(t *testing.T) {
	const room = 8
	numbered := func(n int) string { return fmt.Sprintf("n == %d", n) }
	program := compile(t, newEnvironment(t, cel.Config{}), numbered(0))
	observed := &recorder{}
	// An entry takes some hundred bytes beside its program, which takes thousands: there is no room for one more.
	environment := newEnvironment(t, cel.Config{Observer: observed, CacheBytes: int64(room*program.Size() + room<<9)})
	for range 2 {
		for n := range room {
			compile(t, environment, numbered(n))
		}
		require.Equal(t, room, observed.misses())
	}
	for _, step := range []struct{ n, misses int }{{0, 8}, {8, 9}, {2, 9}, {0, 9}, {1, 10}, {3, 11}} {
		compile(t, environment, numbered(step.n))
		require.Equal(t, step.misses, observed.misses(), "%d", step.n)
	}
}

// A mistake takes little, and is remembered as a program is.
func TestMistakesAreBounded(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed, CacheBytes: 256 << 10})
	for n := range 1000 {
		_, err := environment.Compile(t.Context(), fmt.Sprintf("%d", n)) // wrong type
		_ = requireError(t, err, cel.ReasonType)
	}
	_, err := environment.Compile(t.Context(), "999")
	_ = requireError(t, err, cel.ReasonType)
	require.Equal(t, 1000, observed.misses())
	_, err = environment.Compile(t.Context(), "0")
	_ = requireError(t, err, cel.ReasonType)
	require.Equal(t, 1001, observed.misses())
}

// Whoever writes as many expressions as he likes, as large as they may be, takes no more
// memory than there is for them.
func TestFloodOfExpressions(t *testing.T) {
	const limit, expressions = 8 << 20, 60
	environment := newEnvironment(t, cel.Config{CacheBytes: limit})
	compile(t, environment, cubic)
	before := heap()
	largest := 0
	for n := range expressions {
		program := compile(t, environment, fmt.Sprintf("n != %d && %s true", n, strings.Repeat("[n, 1].all(x, x > 0) || ", 200)))
		largest = max(largest, program.Size())
	}
	taken := heap() - before
	t.Logf("%d bytes are taken by what takes %d each", taken, largest)
	require.Greater(t, expressions*largest, 4*limit, "it is a flood")
	require.Less(t, taken, 2*limit)
	runtime.KeepAlive(environment)
}

func heap() int {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}

func TestConcurrentCallersCompileOnce(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed})
	programs := make([]*cel.Program, 16)
	inParallel(len(programs), func(i int) { programs[i], _ = environment.Compile(t.Context(), cubic) })
	require.NotNil(t, programs[0])
	for _, program := range programs {
		require.Same(t, programs[0], program)
	}
	require.Equal(t, 1, observed.misses())
	require.Len(t, observed.compilations, len(programs))
}

// Different expressions don't wait for each other's result.
func TestConcurrentCompilationsOfDifferentExpressions(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed, CacheBytes: 100 << 10})
	inParallel(16, func(i int) {
		expression := fmt.Sprintf("n == %d", i%8)
		if program, err := environment.Compile(t.Context(), expression); err != nil || program.Expression() != expression {
			t.Errorf("%s: got %v, %v", expression, program, err)
		}
	})
	require.GreaterOrEqual(t, observed.misses(), 8)
}
