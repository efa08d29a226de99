// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/randomexpr"
	"github.com/celset/celset/internal/testing/transcript"
)

// strange returns a line of devices. Some devices lack attributes or have attributes of another type.
func strange() []*device.Device {
	all := line(5)
	for i, missing := range map[int]resourceapi.QualifiedName{1: "y", 2: "s", 3: "l"} {
		source := sourceOf(i)
		delete(source.Attributes, missing)
		all[i] = device.New("d", source)
	}
	odd := sourceOf(4)
	odd.Attributes["y"], odd.Attributes["s"], odd.Attributes["l"] = odd.Attributes["s"], odd.Attributes["v"], odd.Attributes["y"]
	all[4] = device.New("d", odd)
	return all
}

// TestConstructs records the bounds of each construct for one partial set. For other partial sets it compares the bounds with
// the results of all completions. Some devices make a construct fail.
func TestConstructs(t *testing.T) {
	e := environment(t)
	transcript.Run(t, "testdata/constructs.txt", func(t *testing.T, text string) string {
		f := compiled(t, e, text)
		soundOf(f, 3, line(5)).checkAll(t)
		soundOf(f, 2, strange()).checkAll(t)
		s := soundOf(f, 3, line(6))
		bounds := bound.Analyze(f.Expression, 3).Tabulate(s.all).NewBounds(t.Context(), nil)
		p := s.partial([]int{0, 5}, []int{1, 2, 3, 4})
		may := bounds.Bound(p)
		if infeasible, _ := s.check(t, bounds, p, bound.Thorough); may != bound.True|bound.False {
			require.Equal(t, may == bound.False, infeasible)
		}
		return may.String()
	})
}

// notUnderstood maps the names of expressions with an open conjunct to the reason.
var notUnderstood = map[string]string{
	"ring: by place":                             "distinct may panic, and what it is asked about depends on places",
	"coupled: the same roots in order":           "two lists are compared place by place",
	"sockets: two requests on different sockets": "slices depend on places",
}

// read compiles an expression of the corpus and analyzes it for the devices of its hardware.
func read(t *testing.T, e *device.Environment, x corpus.Expression) *sound {
	t.Helper()
	expression, err := e.Compile(t.Context(), x.Text)
	require.NoError(t, err)
	var all []*device.Device
	for _, d := range x.Hardware.Devices() {
		all = append(all, device.New(d.Driver, &d.Device))
	}
	size := 0
	for _, request := range x.Requests {
		size += request.Count
	}
	return soundOf(formula{x.Text, expression}, size, all)
}

// TestCorpusIsUnderstood checks that expressions of the corpus have no open conjuncts, except the expressions in notUnderstood.
func TestCorpusIsUnderstood(t *testing.T) {
	e := environment(t)
	for _, x := range corpus.Expressions() {
		_, not := notUnderstood[x.Name]
		require.Equal(t, not, read(t, e, x).analysis.Open() > 0, "%s\n%s", x.Name, x.Text)
	}
	t.Logf("%d expressions, all but %d understood in every conjunct", len(corpus.Expressions()), len(notUnderstood))
}

// TestCorpusIsSound checks the bounds of each expression of the corpus for random partial sets of the expression's devices.
func TestCorpusIsSound(t *testing.T) {
	e := environment(t)
	var all []*sound
	for _, x := range corpus.Expressions() {
		all = append(all, read(t, e, x))
	}
	cases.CheckN(t, cases.Of(2000, 10_000), func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "expression")
		s.check(t, s.bounds(t), drawPartial(t, s), rapid.SampledFrom([]bound.Effort{bound.Quick, bound.Thorough}).Draw(t, "effort"))
	})
}

// TestEqualitiesInEqualities covers equalities of bools whose sides are equalities of bools.
func TestEqualitiesInEqualities(t *testing.T) {
	var seen statistics
	var equality func(t *rapid.T, depth int) string
	equality = func(t *rapid.T, depth int) string {
		if depth == 0 || rapid.IntRange(0, 3).Draw(t, "deeper") == 0 {
			return "(" + randomexpr.Condition(t, randomAttributes) + ")"
		}
		return "(" + equality(t, depth-1) + rapid.SampledFrom([]string{" == ", " != "}).Draw(t, "relation") + equality(t, depth-1) + ")"
	}
	cases.CheckN(t, cases.Of(300, 5_000), soundnessOf(t, &seen, func(t *rapid.T) string { return equality(t, 3) }))
	t.Logf("%+v", seen)
	require.Positive(t, seen.decided)
	require.Positive(t, seen.infeasible)
}

// TestWhatIsNotReadIsOpen checks that bounds stay sound if the analysis stops after any number of parts.
func TestWhatIsNotReadIsOpen(t *testing.T) {
	var seen statistics
	sound := soundness(t, &seen)
	cases.CheckN(t, cases.Of(500, 5_000), func(t *rapid.T) {
		defer bound.ReadAtMost(rapid.IntRange(1, 40).Draw(t, "readings"))()
		sound(t)
	})
	t.Logf("%+v", seen)
	require.Positive(t, seen.infeasible)
}

// TestChainsOfEqualities checks that an equality of bools is written out with at most two copies of each side, in chains of any
// length.
func TestChainsOfEqualities(t *testing.T) {
	e := environment(t)
	all := devicesWith(values{"y": 0}, values{"y": 1}, values{"y": 2})
	condition := "devices.all(d, d.attributes['d'].y == 0)"
	for name, text := range map[string]string{
		"in a row":        condition + strings.Repeat(" == "+condition, 60),
		"from the right":  strings.Repeat(condition+" == (", 40) + condition + strings.Repeat(")", 40),
		"of lists":        strings.Repeat("[", 20) + condition + strings.Repeat("] == [true]", 20),
		"of counts":       counted(11) + " == 1",
		"in a quantifier": strings.Repeat("devices.all(d, d.attributes['d'].y < 3 && "+condition+" == ", 20) + condition + strings.Repeat(")", 20),
	} {
		t.Run(name, func(t *testing.T) {
			expression, err := e.Compile(t.Context(), text)
			require.NoError(t, err)
			bounds := bound.Analyze(expression, 2).Tabulate(all).NewBounds(t.Context(), nil)
			got := bounds.Bound(bound.Partial{Chosen: of(3, 1, 2), Domain: of(3), Forced: of(3)})
			satisfied, err := expression.Satisfied(t.Context(), all[1:], nil)
			require.NoError(t, err)
			want := bound.False
			if satisfied {
				want = bound.True
			}
			require.NotZero(t, got&want)
		})
	}
}

// counted returns an expression with nested counts. Each level is read several times for each time the level above is read.
func counted(levels int) string {
	text := "devices.size()"
	for level := range levels {
		text = fmt.Sprintf("(devices.map(d%d, %s).distinct().size() == 1 ? 1 : 2)", level, text)
	}
	return text
}

// TestCompleteSets compares the bounds of complete sets with the results of CEL. The search accepts or rejects a complete set
// without calling CEL if its bound is true or false.
func TestCompleteSets(t *testing.T) {
	e := environment(t)
	sets, proven, refuted, satisfied := 0, 0, 0, 0
	cases.CheckN(t, cases.Of(2000, 10_000), func(rt *rapid.T) {
		text := randomexpr.Condition(rt, randomAttributes)
		expression, err := e.Compile(rt.Context(), text)
		if err != nil {
			return
		}
		size := rapid.IntRange(1, 3).Draw(rt, "size")
		analysis := bound.Analyze(expression, size)
		s := soundOf(formula{text, expression}, size, devices(rt, rapid.IntRange(size, 4).Draw(rt, "devices")))
		s.tables = analysis.Tabulate(s.all)
		bounds := s.bounds(rt)
		completions(s.partial(nil, upTo(len(s.all))), len(s.all), 0, func(set bitset.Set) {
			sets++
			is := s.outcome(rt, set)
			if is == bound.True {
				satisfied++
			}
			may := bounds.Bound(bound.Partial{Chosen: set, Domain: bitset.New(len(s.all))})
			require.Zero(rt, is&^may, "%s\n%b is %s, bounds say %s", text, set, is, may)
			switch may {
			case bound.True:
				proven++
				require.True(rt, bounds.MayProve(), text)
			case bound.False:
				refuted++
			}
		})
	})
	t.Logf("%d sets, %d satisfied, %d proven, %d refuted", sets, satisfied, proven, refuted)
	require.Greater(t, proven, satisfied/2)
	require.Greater(t, refuted, sets/4)
}
