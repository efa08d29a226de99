// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/internal/redteam/expensive"
)

// tooLong is a timeout for an evaluation. Even on a busy machine, each evaluation should end much earlier.
const tooLong = 3 * time.Minute

func environments(t testing.TB) []*expensive.Environment {
	t.Helper()
	devices, err := expensive.Devices()
	require.NoError(t, err)
	clusters, err := expensive.Clusters()
	require.NoError(t, err)
	return []*expensive.Environment{devices, clusters}
}

// TestAllOverloadsAreReached checks that the generator can generate calls of every function. Other functions would never be
// tested.
func TestAllOverloadsAreReached(t *testing.T) {
	for _, environment := range environments(t) {
		var compiled int
		for _, call := range environment.Calls.All() {
			reached := false
			for i := range 200 {
				text := environment.Calls.Expression(call, genome(uint64(i)))
				if text == "" {
					continue
				}
				if _, err := environment.Compile(text); err == nil {
					reached = true
					compiled++
					break
				}
			}
			require.True(t, reached, "%s: no expression with %s compiles, such as %s", environment.Name, call, environment.Calls.Expression(call, genome(1)))
		}
		require.Greater(t, compiled, 150)
	}
}

// genome returns the same bytes for the same number. The bytes for number 0 are empty.
func genome(number uint64) []byte {
	result := make([]byte, number%40)
	for i := range result {
		number = number*6364136223846793005 + 1442695040888963407
		result[i] = byte(number >> 33)
	}
	return result
}

// FuzzExpensive searches for expressions that continue after their context has ended, or that take more time or memory than
// their cost allows. It checks time only during fuzzing, so that normal test runs don't fail on a slow machine.
func FuzzExpensive(f *testing.F) {
	of, timed := environments(f), flag.Lookup("test.fuzz").Value.String() != ""
	for i := range uint64(40) {
		f.Add(uint16(i*7), genome(i))
	}
	f.Fuzz(func(t *testing.T, number uint16, genome []byte) {
		environment := of[int(number)%len(of)]
		calls := environment.Calls.All()
		text := environment.Calls.Expression(calls[int(number)/len(of)%len(calls)], genome)
		if text == "" {
			return
		}
		evaluate, err := environment.Compile(text)
		if err != nil {
			return
		}
		timer := time.AfterFunc(tooLong, func() { panic("goes on long after its context has ended: " + text) })
		defer timer.Stop()
		require.NoError(t, expensive.Judge(context.WithoutCancel(t.Context()), evaluate, timed), text)
	})
}
