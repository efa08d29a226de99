// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cel_test

import (
	"fmt"
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

	_, first := environment.Compile("n ==")
	_, second := environment.Compile("n ==")
	require.Same(t, requireError(t, first, cel.ReasonInvalid), requireError(t, second, cel.ReasonInvalid))
	require.Equal(t, 3, observed.misses())
}

func TestCacheIsBounded(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed, CacheSize: 2})
	for _, step := range []struct {
		n      int
		misses int
	}{
		{n: 1, misses: 1},
		{n: 2, misses: 2},
		{n: 1, misses: 2},
		{n: 3, misses: 3}, // 2 was not used for the longest time
		{n: 1, misses: 3},
		{n: 2, misses: 4},
		{n: 3, misses: 5},
	} {
		compile(t, environment, fmt.Sprintf("n == %d", step.n))
		require.Equal(t, step.misses, observed.misses())
	}
}

func TestDefaultCacheSize(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed})
	for range 2 {
		for n := range cel.DefaultCacheSize {
			_, err := environment.Compile(fmt.Sprintf("%d", n)) // wrong type: quicker than a program
			_ = requireError(t, err, cel.ReasonType)
		}
	}
	require.Equal(t, cel.DefaultCacheSize, observed.misses())
}

func TestConcurrentCallersCompileOnce(t *testing.T) {
	observed := &recorder{}
	environment := newEnvironment(t, cel.Config{Observer: observed})
	programs := make([]*cel.Program, 16)
	inParallel(len(programs), func(i int) { programs[i], _ = environment.Compile(cubic) })
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
	environment := newEnvironment(t, cel.Config{Observer: observed, CacheSize: 4})
	inParallel(16, func(i int) {
		expression := fmt.Sprintf("n == %d", i%8)
		if program, err := environment.Compile(expression); err != nil || program.Expression() != expression {
			t.Errorf("%s: got %v, %v", expression, program, err)
		}
	})
	require.GreaterOrEqual(t, observed.misses(), 8)
}
