// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/fairness"
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

// TestCacheIsBounded tests that a full cache drops the least recently used expression.
func TestCacheIsBounded(t *testing.T) {
	const room = 8
	numbered := func(n int) string { return fmt.Sprintf("n == %d", n) }
	program := compile(t, newEnvironment(t, cel.Config{}), numbered(0))
	observed := &recorder{}
	// An entry takes some hundred bytes in addition to its program, and a program takes thousands of bytes. So exactly eight
	// programs fit.
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

// TestMistakesAreBounded tests that the cache also stores errors, and that an error takes little memory.
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

// TestFloodOfExpressions tests that compiling many large expressions takes no more memory than the limit of the cache.
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

// TestNothingIsCompiledForCallersThatAreGone tests that an expression is not compiled if the context of its caller has ended.
// When another caller asks, the expression is compiled.
func TestNothingIsCompiledForCallersThatAreGone(t *testing.T) {
	watched := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: watched})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	for _, text := range []string{"n == 1", "n ==", strings.Repeat("n", cel.MaxExpressionLength+1)} {
		_, err := environment.Compile(ctx, text)
		require.EqualError(t, err, "wait to compile an expression: gone")
	}
	require.Empty(t, watched.compilations)
	_, err := environment.Compile(t.Context(), "n == 1")
	require.NoError(t, err)
	_, err = environment.Compile(ctx, "n == 1")
	require.NoError(t, err, "it is known already")
	require.Equal(t, []compilation{{"numbers", false, false}, {"numbers", true, false}}, watched.compilations)
}

// TestTenantsCompileInTurns lets one tenant queue a hundred expressions and then a last one. Another tenant that asks for the
// last expression must not wait for the hundred.
func TestTenantsCompileInTurns(t *testing.T) {
	const many = 100
	var mutex sync.Mutex
	var ended []string
	environment := newEnvironment(t, cel.Config{})
	compile := func(tenant, text string) {
		_, err := environment.Compile(fairness.WithTenant(t.Context(), tenant), text)
		mutex.Lock()
		defer mutex.Unlock()
		if err == nil {
			ended = append(ended, tenant)
		}
	}
	var all sync.WaitGroup
	// Compiling each expression takes milliseconds, so that most are still queued when the other tenant starts.
	slow := strings.Repeat("||n+1+1+1+1+1+1+1+1==1", 10)
	for i := range many {
		all.Go(func() { compile("many", fmt.Sprintf("n == %d%s", i, slow)) })
	}
	runtime.Gosched()
	all.Go(func() { compile("many", "n == 1") })
	for {
		mutex.Lock()
		begun := len(ended)
		mutex.Unlock()
		if begun > 0 {
			break
		}
		runtime.Gosched()
	}
	compile("one", "n == 1")
	mutex.Lock()
	at := len(ended)
	mutex.Unlock()
	all.Wait()
	require.Len(t, ended, many+2)
	require.Less(t, at, many/2, "it came after all of the others")
}
