// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bound"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
	"github.com/celset/celset/internal/testing/transcript"
)

// strange has devices in a line of which some lack attributes, or have others than the
// rest.
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

// TestConstructs has what is said of one partial set, and compares what is said of others with
// their completions, also where a construct fails for devices.
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

// notUnderstood are the expressions of the corpus of which a conjunct is open.
var notUnderstood = map[string]string{
	"ring: by place":                             "distinct may panic, and what it is asked about depends on places",
	"coupled: the same roots in order":           "two lists are compared place by place",
	"sockets: two requests on different sockets": "slices depend on places",
}

// read prepares an expression of the corpus.
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

// Every conjunct of the expressions that people write is understood, but for a few.
func TestCorpusIsUnderstood(t *testing.T) {
	e := environment(t)
	for _, x := range corpus.Expressions() {
		_, not := notUnderstood[x.Name]
		require.Equal(t, not, read(t, e, x).tables.Open() > 0, "%s\n%s", x.Name, x.Text)
	}
	t.Logf("%d expressions, all but %d understood in every conjunct", len(corpus.Expressions()), len(notUnderstood))
}

// Whatever devices of a node a partial set has.
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
