// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package expensive_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/redteam/expensive"
)

const (
	// durationVariable is how long to search, for all environments together.
	durationVariable = "CELSET_EXPENSIVE"

	defaultDuration = 10 * time.Second

	// mostTimes is how many times as long as in the median a unit may take.
	mostTimes = 10
	// tooLong ends the test: an evaluation should have ended long ago, on a busy machine, too.
	tooLong = 3 * time.Minute
)

func environments(t testing.TB) []*expensive.Environment {
	t.Helper()
	devices, err := expensive.Devices()
	require.NoError(t, err)
	clusters, err := expensive.Clusters()
	require.NoError(t, err)
	return []*expensive.Environment{devices, clusters}
}

// guard ends the process, with the name of the expression, if one never ends, and leaves
// it in a file in case all memory is gone before.
type guard struct {
	file  string
	timer *time.Timer
}

func newGuard(t testing.TB) *guard {
	t.Helper()
	g := &guard{file: filepath.Join(os.TempDir(), fmt.Sprintf("celset-expensive-%d.cel", os.Getpid()))}
	t.Cleanup(func() {
		g.timer.Stop()
		_ = os.Remove(g.file)
	})
	t.Logf("while an expression is evaluated it is in %s", g.file)
	g.timer = time.NewTimer(time.Hour)
	return g
}

func (g *guard) trying(expression string) {
	_ = os.WriteFile(g.file, []byte(expression), 0o600)
	g.timer.Stop()
	g.timer = time.AfterFunc(tooLong, func() { panic("goes on long after its context has ended: " + expression) })
}

// TestCostIsAboutProportionalToTime searches for expressions with the most time and the
// most bytes for a unit of cost. What it finds within seconds says little, and what the
// clock says while other tests run even less: only a long search judges the times.
func TestCostIsAboutProportionalToTime(t *testing.T) {
	cases.OnlyNightly(t, "measures time")
	duration, judges := defaultDuration, false
	if text := os.Getenv(durationVariable); text != "" {
		var err error
		duration, err = time.ParseDuration(text)
		require.NoError(t, err)
		judges = true
	}
	g := newGuard(t)
	of := environments(t)
	for _, environment := range of {
		t.Run(environment.Name, func(t *testing.T) {
			report := expensive.Search(t.Context(), environment, expensive.Options{
				Seed: cases.Seed(), Duration: duration / time.Duration(len(of)), Trying: g.trying,
			})
			t.Logf("%s", report)
			require.NotEmpty(t, report.Slowest)
			if !judges {
				return
			}
			for _, m := range report.Overdue() {
				t.Errorf("goes on for %s with a deadline of %s: %s", m.Time, expensive.Deadline, expensive.Abbreviate(m.Expression))
			}
			if report.Ratio() > mostTimes {
				t.Errorf("a unit of cost takes %.1f times as long as in the median, in %s", report.Ratio(), expensive.Abbreviate(report.Slowest[0].Expression))
			}
		})
	}
}

// TestAllOverloadsAreReached: a search that does not try a function says nothing of it.
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

// genome is the same for the same number; the first is empty.
func genome(number uint64) []byte {
	result := make([]byte, number%40)
	for i := range result {
		number = number*6364136223846793005 + 1442695040888963407
		result[i] = byte(number >> 33)
	}
	return result
}

// TestSameBytesSameExpression: what fuzzing finds can be found again.
func TestSameBytesSameExpression(t *testing.T) {
	environment := environments(t)[0]
	distinct := map[string]bool{}
	for i := range uint64(200) {
		call := environment.Calls.All()[int(i)%len(environment.Calls.All())]
		text := environment.Calls.Expression(call, genome(i))
		require.Equal(t, text, environment.Calls.Expression(call, genome(i)))
		distinct[text] = true
	}
	require.Greater(t, len(distinct), 100)
}

func TestAbbreviate(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"abcabc":                 "abcabc",
		strings.Repeat("a", 100): "«a»100",
		"'" + strings.Repeat("ab", 20) + "' == 'x'": "'«ab»20' == 'x'",
		"[" + strings.Repeat("1,", 30) + "1]":       "[«1,»301]",
	} {
		require.Equal(t, want, expensive.Abbreviate(text))
	}
}

// FuzzExpensive looks for expressions that go on after their context has ended, or
// allocate more than they may.
func FuzzExpensive(f *testing.F) {
	of := environments(f)
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
		m := expensive.Measure(context.WithoutCancel(t.Context()), evaluate)
		require.False(t, m.Overdue, "goes on for %s with a deadline of %s: %s", m.Time, expensive.Deadline, text)
		require.Less(t, m.Bytes, uint64(expensive.MostBytes), "allocates %d MiB: %s", m.Bytes>>20, text)
	})
}
