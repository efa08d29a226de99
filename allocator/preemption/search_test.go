// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/internal/testing/cases"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// single returns a victim with one pod for each priority.
func single(priorities ...int32) []Victim {
	var victims []Victim
	for i, priority := range priorities {
		victims = append(victims, Victim{{Priority: priority, Start: time.Unix(int64(1000-i), 0)}})
	}
	return victims
}

// anyOf returns a function for Fits. It returns true if all victims of one of the sets are removed.
func anyOf(sets ...[]int) func(context.Context, bitset.Set) (bool, error) {
	return func(_ context.Context, removed bitset.Set) (bool, error) {
		for _, set := range sets {
			fits := true
			for _, i := range set {
				fits = fits && removed.Has(i)
			}
			if fits {
				return true, nil
			}
		}
		return false, nil
	}
}

func searched(t require.TestingT, problem Problem) *Found {
	if problem.MaxQuestions == 0 {
		problem.MaxQuestions = math.MaxInt / 2
	}
	found, err := Search(context.Background(), problem)
	require.NoError(t, err)
	return found
}

func TestWhoIsRemoved(t *testing.T) {
	counting := single(9, 1, 1)
	counting[1][0].Budgets, counting[2][0].Budgets = []int{0}, []int{0}
	group := Victim{{Priority: 3}, {Priority: 3}, {Priority: 3}}
	for name, test := range map[string]struct {
		victims []Victim
		allowed []int32
		sets    [][]int
		want    []int
	}{
		// Removing the most important victim removes one pod. Keeping this victim requires removing three pods.
		"not who comes first":          {single(5, 5, 5, 5), nil, [][]int{{0}, {1, 2, 3}}, []int{0}},
		"low priorities go in numbers": {single(9, 1, 1, 1), nil, [][]int{{0}, {1, 2, 3}}, []int{1, 2, 3}},
		"budgets count most":           {counting, []int32{1}, [][]int{{0}, {1, 2}}, []int{0}},
		"budgets that allow it":        {counting, []int32{2}, [][]int{{0}, {1, 2}}, []int{1, 2}},
		"groups go as a whole":         {[]Victim{group, {{Priority: 3}}, {{Priority: 3}}}, nil, [][]int{{0}, {1, 2}}, []int{1, 2}},
		"late starters go":             {single(1, 1), nil, [][]int{{0}, {1}}, []int{0}},
		"nobody has to go":             {single(1, 2), nil, [][]int{nil}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := searched(t, Problem{Victims: test.victims, Allowed: test.allowed, Fits: anyOf(test.sets...)})
			require.ElementsMatch(t, test.want, found.Removed)
			require.True(t, found.Exact)
			require.Equal(t, len(test.want), found.Cost.Pods)
		})
	}
	require.Nil(t, searched(t, Problem{Victims: single(1, 2), Fits: anyOf()}), "nobody can help")
}

func TestErrorsEndIt(t *testing.T) {
	broken := errors.New("broken")
	_, err := Search(t.Context(), Problem{Victims: single(1), Fits: func(context.Context, bitset.Set) (bool, error) { return false, broken }})
	require.ErrorIs(t, err, broken)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Search(ctx, Problem{Victims: single(1), Fits: anyOf(nil)})
	require.ErrorIs(t, err, context.Canceled)
	// Over ends the search even if the search no longer calls Fits.
	over := errors.New("over")
	_, err = Search(t.Context(), Problem{Victims: single(1, 1), Fits: anyOf([]int{0}), MaxQuestions: 10, Over: func() error { return over }})
	require.ErrorIs(t, err, over)
}

// TestMaxQuestions checks the limit on calls of Fits. kube-scheduler's set needs one call for each victim.
func TestMaxQuestions(t *testing.T) {
	problem := Problem{Victims: single(5, 5, 5, 5), Fits: anyOf([]int{0}, []int{1, 2, 3}), MaxQuestions: 1}
	found := searched(t, problem)
	require.Equal(t, []int{1, 2, 3}, found.Removed)
	require.False(t, found.Exact)
	require.LessOrEqual(t, found.Questions, 1+4+4+1)
}

// TestNeedsSpareQuestions checks that Needs saves calls of Fits. Any eight of sixteen equal victims suffice: 12,870 sets.
func TestNeedsSpareQuestions(t *testing.T) {
	problem := Problem{Victims: single(make([]int32, 16)...), Fits: func(_ context.Context, removed bitset.Set) (bool, error) { return removed.Count() >= 8, nil }}
	for i := range problem.Victims {
		problem.Victims[i][0].Start = time.Unix(0, 0)
	}
	need := Need{Missing: 8}
	for range problem.Victims {
		need.Gives = append(need.Gives, 1)
	}
	problem.Needs = []Need{need}
	found := searched(t, problem)
	require.True(t, found.Exact)
	require.Equal(t, 8, found.Cost.Pods)
	require.LessOrEqual(t, found.Questions, 40)
}

func TestOfManyTheDecisiveAreSearched(t *testing.T) {
	priorities := make([]int32, 40)
	victims := single(priorities...)
	sets := [][]int{{10, 39}, {20, 21, 22, 39}}
	greedy := searched(t, Problem{Victims: victims, Fits: anyOf(sets...)})
	require.False(t, greedy.Exact)
	require.Equal(t, []int{20, 21, 22, 39}, greedy.Removed)
	found := searched(t, Problem{Victims: victims, Fits: anyOf(sets...), Decisive: []int{10, 20, 21, 22}})
	require.True(t, found.Exact)
	require.Equal(t, []int{10, 39}, found.Removed)
}

// TestSameAsAllSets compares the result of the search with an enumeration of all sets.
func TestSameAsAllSets(t *testing.T) {
	better, several := 0, 0
	check := func(rt *rapid.T) {
		problem := randomProblem(rt)
		found := searched(rt, problem)
		var least *Cost
		of := &search{Problem: problem}
		for mask := range uint64(1) << len(problem.Victims) {
			fits, err := problem.Fits(context.Background(), bitset.Set{mask})
			require.NoError(rt, err)
			if cost := of.cost(bitset.Set{mask}); fits && (least == nil || cost.Compare(*least) < 0) {
				least = &cost
			}
		}
		if least == nil {
			require.Nil(rt, found)
			return
		}
		require.NotNil(rt, found)
		require.True(rt, found.Exact)
		removed := bitset.New(len(problem.Victims))
		for _, i := range found.Removed {
			removed.Add(i)
		}
		fits, err := problem.Fits(context.Background(), removed)
		require.NoError(rt, err)
		require.True(rt, fits)
		require.Equal(rt, found.Cost, of.cost(removed))
		require.Zero(rt, found.Cost.Compare(*least), "%+v, but %+v", found, least)
		greedy, err := (&search{Problem: problem, ctx: context.Background()}).greedy()
		require.NoError(rt, err)
		if greedy.Cost.Compare(found.Cost) > 0 {
			better++
		}
		if len(found.Removed) > 1 {
			several++
		}
	}
	cases.CheckN(t, cases.Of(600, 3000), check)
	require.Positive(t, better, "it is never better than what kube-scheduler would find")
	require.Positive(t, several)
}

func (s *search) greedy() (*Found, error) {
	all := bitset.New(len(s.Victims))
	for i := range s.Victims {
		all.Add(i)
	}
	removed, err := s.reprieve(all, s.inOrderOfReprieve())
	if err != nil {
		return nil, err
	}
	s.keep(removed)
	return s.found, nil
}

func randomProblem(t *rapid.T) Problem {
	n := rapid.IntRange(1, 9).Draw(t, "victims")
	problem := Problem{Allowed: rapid.SliceOfN(rapid.Int32Range(0, 2), 0, 2).Draw(t, "allowed")}
	for range n {
		var victim Victim
		for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "pods") {
			pod := Pod{Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Start: time.Unix(rapid.Int64Range(0, 3).Draw(t, "start"), 0)}
			if rapid.IntRange(0, 9).Draw(t, "lowest") == 0 {
				pod.Priority = math.MinInt32
			}
			for budget := range problem.Allowed {
				if rapid.IntRange(0, 2).Draw(t, "counts") == 0 {
					pod.Budgets = append(pod.Budgets, budget)
				}
			}
			victim = append(victim, pod)
		}
		problem.Victims = append(problem.Victims, victim)
	}
	if rapid.Bool().Draw(t, "counted") {
		need := Need{Missing: rapid.IntRange(0, n+2).Draw(t, "missing"), Gives: rapid.SliceOfN(rapid.IntRange(0, 3), n, n).Draw(t, "gives")}
		problem.Needs = []Need{need}
		problem.Fits = func(_ context.Context, removed bitset.Set) (bool, error) {
			sum := 0
			for i := range removed.All() {
				sum += need.Gives[i]
			}
			return sum >= need.Missing, nil
		}
		return problem
	}
	problem.Fits = anyOf(rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID[int]), 0, 4).Draw(t, "sets")...)
	return problem
}
