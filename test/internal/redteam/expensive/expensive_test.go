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

// tooLong ends the test: even on a busy machine, an evaluation should have ended long before.
const tooLong = 3 * time.Minute

func environments(t testing.TB) []*expensive.Environment {
	t.Helper()
	devices, err := expensive.Devices()
	require.NoError(t, err)
	clusters, err := expensive.Clusters()
	require.NoError(t, err)
	return []*expensive.Environment{devices, clusters}
}

// TestAllOverloadsAreReached checks that the search tries every function, because it finds nothing about other functions.
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

// genome returns fixed bytes for a number. The first genome is empty.
func genome(number uint64) []byte {
	result := make([]byte, number%40)
	for i := range result {
		number = number*6364136223846793005 + 1442695040888963407
		result[i] = byte(number >> 33)
	}
	return result
}

// FuzzExpensive looks for expressions that continue after their context has ended, or that exceed the time or memory of their
// cost. It judges time only while fuzzing, so that normal test runs never fail by time.
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
