// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
)

// layout says which devices of a machine are in use.
type layout struct {
	name  string
	inUse func(i int) bool
}

func layouts() []layout {
	result := []layout{
		{"empty", func(int) bool { return false }},
		{"every eighth in use", func(i int) bool { return i%8 == 3 }},
		{"every second in use", func(i int) bool { return i%2 == 1 }},
	}
	for _, percent := range []int{25, 50, 70} {
		random := rand.New(rand.NewPCG(1, uint64(percent)))
		inUse := make([]bool, 128)
		for i := range inUse {
			inUse[i] = random.IntN(100) < percent
		}
		result = append(result, layout{fmt.Sprintf("%d %% in use", percent), func(i int) bool { return inUse[i] }})
	}
	return result
}

// asking is the claim for an expression on a machine with a layout.
func asking(e corpus.Expression, l layout) scenario {
	s := scenario{opts: []Option{WithCostBudget(5_000_000), WithStepBudget(100_000)}}
	wanted := claim("c")
	for i, r := range e.Requests {
		wanted.want(fmt.Sprint("r", i), int64(r.Count)).class(r.Driver)
	}
	s.claims = []*claimBuilder{wanted.define("a", e.Text).cel("a")}
	free := map[string][]resourceapi.Device{}
	for i, d := range e.Hardware.Devices() {
		if !l.inUse(i) {
			free[d.Driver] = append(free[d.Driver], d.Device)
		}
	}
	for _, driver := range e.Hardware.Drivers() {
		s.classes = append(s.classes, classOf(driver))
		s.classes[len(s.classes)-1].Spec.Selectors = celSelectors([]string{"device.driver == '" + driver + "'"})
		s.slices = append(s.slices, slice(driver, free[driver]...).driver(driver))
	}
	return s
}

// unanswered are the expressions for which the search may use up its budgets.
var unanswered = map[string]string{
	"rack: differences of neighbours": "values of neighbours in the order of the set, in a list",
}

// TestAskedIsAnswered: what people ask of machines is answered within the budgets of the plugin,
// from a cold start, whatever is in use.
func TestAskedIsAnswered(t *testing.T) {
	steps := make(map[string]int64)
	for i, e := range corpus.Asked() {
		t.Run(e.Name, func(t *testing.T) {
			for j, l := range layouts() {
				if !cases.Nightly() && (i+j)%3 != 0 {
					continue // the race detector makes ten seconds ninety
				}
				s := asking(e, l)
				a := s.allocator(t)
				_, err := a.Allocate(t.Context(), newNode(nodeName), s.apiClaims())
				if _, not := unanswered[e.Name]; !not {
					require.NoError(t, err, "%s\n%s", l.name, e.Text)
				}
				steps[e.Name] = max(steps[e.Name], a.Stats().Steps)
			}
		})
	}
	long := 0
	for _, n := range steps {
		if n > 100 {
			long++
		}
	}
	t.Logf("%d expressions, %d of them take more than 100 steps in some layout", len(steps), long)
	require.LessOrEqual(t, long, 8)
}

func TestMostAsked(t *testing.T) {
	pair, block, other := Shape{"a", "pair", 2}, Shape{"a", "block", 8}, Shape{"b", "pair", 2}
	require.Equal(t, []Shape{pair, block, other}, MostAsked(map[Shape]int{other: 1, block: 1, pair: 4}))
	require.Equal(t, []Shape{block, other, pair}, MostAsked(map[Shape]int{other: 2, block: 3, pair: 1}), "two or three times is as often")
	many := map[Shape]int{other: 1}
	for i := range 2 * MaxShapesOfClass {
		many[Shape{"a", "pair", i + 2}] = 1
	}
	most := MostAsked(many)
	require.Len(t, most, MaxShapesOfClass+1)
	require.Equal(t, Shape{"a", "pair", 2*MaxShapesOfClass + 1}, most[0])
	require.Equal(t, "breaks 1 of 4 sets of 2 (constraint pair of class a), 0 of 0 sets of 8 (constraint block of class a)",
		PreferenceValue{Value: -1, Losses: []ShapeLoss{{pair, 1, 3}, {block, 0, 0}}}.String())
	require.Equal(t, "-7", PreferenceValue{Value: -7}.String())
}
