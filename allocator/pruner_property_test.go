// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// The search is compared with the exhaustive one, its reference. A case is one
// answer: for the claims of a pod on a node, with an expression over their devices.
//
// Compiling an expression takes as long as evaluating it on some fifty sets, so cases
// come in fleets: a few expressions, a few pods with claims that use them, a few
// nodes, and one or two scheduling cycles in which different devices are in use.
// Fleets also show that answers do not depend on what an allocator was asked before,
// or what others with the same cache were asked.

// randomCases is the number of cases: three of eight of them with expressions of the corpus, the
// others with random ones.
func randomCases() int { return cases.Of(10_000, 200_000) }

// tally counts cases, to keep the generators from degenerating unnoticed. An
// interesting case is one in which devices were passed over.
type tally struct{ cases, found, none, failed, cut, cutAndFound, cutAndNone, cutAndFailed int }

func (s *tally) enter(a answer, cuts int64) {
	s.cases++
	for _, outcome := range []struct {
		met      bool
		all, cut *int
	}{
		{a.Results != nil, &s.found, &s.cutAndFound},
		{a.Results == nil && a.onNode, &s.none, &s.cutAndNone},
		{a.Results == nil && !a.onNode, &s.failed, &s.cutAndFailed},
	} {
		if outcome.met {
			*outcome.all++
			if cuts > 0 {
				s.cut++
				*outcome.cut++
			}
		}
	}
}

func (s *tally) add(o tally) {
	s.cases += o.cases
	s.found += o.found
	s.none += o.none
	s.failed += o.failed
	s.cut += o.cut
	s.cutAndFound += o.cutAndFound
	s.cutAndNone += o.cutAndNone
	s.cutAndFailed += o.cutAndFailed
}

// Reading expressions changes nothing but the number of steps and evaluations: not
// the devices, not which error is met, with all its text.
func TestSameAsExhaustive(t *testing.T) {
	// Most of what is allocated is garbage soon.
	percent := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for _, kind := range []struct {
		name   string
		shards int
		draw   func(*rapid.T) *fleet
		check  func(*testing.T, tally)
	}{
		{"random", 5, randomFleet, func(t *testing.T, s tally) {
			require.Greater(t, s.cut, s.cases/5)
			require.Greater(t, s.cutAndFound, s.cases/30)
			require.Greater(t, s.cutAndNone, s.cases/10)
			require.Greater(t, s.cutAndFailed, s.cases/250)
			require.Greater(t, s.found, s.cases/5)
			require.Greater(t, s.failed, s.cases/50)
		}},
		{"corpus", 3, corpusFleet, func(t *testing.T, s tally) {
			require.Greater(t, s.cut, s.cases/5)
			require.Greater(t, s.cutAndFound, s.cases/30)
			require.Greater(t, s.cutAndNone, s.cases/10)
			require.Greater(t, s.found, s.cases/5)
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var mutex sync.Mutex
			var sum tally
			t.Cleanup(func() {
				t.Logf("%+v", sum)
				if !t.Failed() {
					kind.check(t, sum)
				}
			})
			for shard := range kind.shards {
				t.Run(strconv.Itoa(shard), func(t *testing.T) {
					t.Parallel()
					s := sameAsExhaustive(t, randomCases()/8, kind.draw)
					mutex.Lock()
					defer mutex.Unlock()
					sum.add(s)
				})
			}
		})
	}
}

// sameAsExhaustive goes through so many cases, or a few more.
func sameAsExhaustive(t *testing.T, n int, draw func(*rapid.T) *fleet) tally {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	var seen tally
	cases.Until(t, 50, func() bool { return seen.cases >= n }, func(rt *rapid.T) {
		if seen.cases < n {
			compareFleet(t, rt, draw(rt), environment, &seen)
		}
	})
	return seen
}

// FuzzSameAsExhaustive is TestSameAsExhaustive for as long as one likes.
func FuzzSameAsExhaustive(f *testing.F) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(f, err)
	// A fleet takes some thousand draws of eight bytes. Inputs that are too short are
	// skipped, so the fuzzer starts from long ones.
	for seed := range byte(8) {
		input := make([]byte, 32<<10)
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(input) // never fails
		f.Add(input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		rapid.MakeFuzz(func(rt *rapid.T) {
			draw := rapid.SampledFrom([]func(*rapid.T) *fleet{randomFleet, randomFleet, corpusFleet}).Draw(rt, "kind")
			compareFleet(t, rt, draw(rt), environment, &tally{})
		})(t, input)
	})
}
