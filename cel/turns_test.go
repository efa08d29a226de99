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

// TestNothingIsCompiledForCallersThatAreGone: what they asked for is compiled when another caller asks.
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

// TestTenantsCompileInTurns has one tenant ask for a hundred expressions before another asks for one, which
// the first asks for, too.
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
	// Each takes milliseconds: these are queued when the other tenant comes.
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
