// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound"
)

// tester is the common part of *testing.T and *rapid.T.
type tester interface {
	require.TestingT
	Context() context.Context
	Helper()
}

// values are attributes of a device in the domain d. The values have type int, int64 or string.
type values map[string]any

// devicesWith returns a device for each element of all.
func devicesWith(all ...values) []*device.Device {
	result := make([]*device.Device, len(all))
	for i, of := range all {
		attributes := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
		for name, value := range of {
			var attribute resourceapi.DeviceAttribute
			switch value := value.(type) {
			case int:
				attribute.IntValue = new(int64(value))
			case int64:
				attribute.IntValue = &value
			case string:
				attribute.StringValue = &value
			}
			attributes[resourceapi.QualifiedName(name)] = attribute
		}
		result[i] = device.New("d", &resourceapi.Device{Name: fmt.Sprint(i), Attributes: attributes})
	}
	return result
}

// spelled expands shorthands in an expression: d.x becomes d.attributes['d'].x, for the variables d, o and p and attributes q
// to z.
func spelled(text string) string {
	var result []byte
	for i := 0; i < len(text); i++ {
		result = append(result, text[i])
		if i+2 < len(text) && text[i+1] == '.' && (text[i] == 'd' || text[i] == 'o' || text[i] == 'p') && (text[i+2] >= 'q' && text[i+2] <= 'z') &&
			(i == 0 || !isLetter(text[i-1])) && (i+3 == len(text) || !isLetter(text[i+3])) {
			result = append(result, ".attributes['d']"...)
		}
	}
	return string(result)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// sound compares the bounds of an expression's partial sets with CEL's results for all completions.
type sound struct {
	formula
	all      []*device.Device
	size     int
	analysis *bound.Analysis
	tables   *bound.Tables
	// outcomes caches the results of complete sets. The key is the set as bits of up to 64 devices.
	outcomes map[uint64]bound.Outcome
}

func newSound(t tester, e *device.Environment, text string, size int, all []*device.Device) *sound {
	t.Helper()
	return soundOf(compiled(t, e, text), size, all)
}

// A formula is an expression with its text.
type formula struct {
	text string
	*device.Expression
}

func compiled(t tester, e *device.Environment, text string) formula {
	t.Helper()
	expression, err := e.Compile(context.Background(), spelled(text))
	require.NoError(t, err, text)
	return formula{text, expression}
}

// soundOf is newSound for an expression that is already compiled. Compiling takes most of the time.
func soundOf(f formula, size int, all []*device.Device) *sound {
	analysis := bound.AnalyzeAscending(f.Expression, size)
	return &sound{formula: f, all: all, size: size, analysis: analysis, tables: analysis.Tabulate(slices.Concat(all, strangers)), outcomes: make(map[uint64]bound.Outcome)}
}

// strangers are devices in the tables that are in no set. A test adds many strangers so that a place of a box is stored as a
// list.
var strangers []*device.Device

// width returns the number of devices in the tables, with strangers.
func (s *sound) width() int { return len(s.all) + len(strangers) }

func (s *sound) bounds(t tester) *bound.Bounds { return s.tables.NewBounds(t.Context(), nil) }

// outcome evaluates the expression for a complete set in ascending order.
func (s *sound) outcome(t tester, set bitset.Set) bound.Outcome {
	if known, ok := s.outcomes[set[0]]; ok {
		return known
	}
	var members []*device.Device
	for i, d := range s.all {
		if set.Has(i) {
			members = append(members, d)
		}
	}
	result := bound.False
	switch satisfied, err := s.Satisfied(t.Context(), members, nil); {
	case err != nil:
		result = bound.Error
	case satisfied:
		result = bound.True
	}
	s.outcomes[set[0]] = result
	return result
}

// partial returns the partial set with the devices at the given chosen and possible indexes.
func (s *sound) partial(chosen, possible []int) bound.Partial {
	return bound.Partial{
		Chosen: of(s.width(), chosen...), Domain: of(s.width(), possible...), Left: s.size - len(chosen),
		Forced: bitset.New(s.width()),
	}
}

// each calls f for all partial sets.
func (s *sound) each(f func(bound.Partial)) {
	chosen, possible := []int{}, []int{}
	var next func(i int)
	next = func(i int) {
		if i == len(s.all) {
			f(s.partial(chosen, possible))
			return
		}
		next(i + 1)
		possible = append(possible, i)
		next(i + 1)
		possible = possible[:len(possible)-1]
		if len(chosen) < s.size {
			chosen = append(chosen, i)
			next(i + 1)
			chosen = chosen[:len(chosen)-1]
		}
	}
	next(0)
}

// check fails the test if the bounds of a partial set are wrong. It returns the results of Infeasible.
func (s *sound) check(t tester, bounds *bound.Bounds, p bound.Partial, effort bound.Effort) (infeasible bool, propagated bound.Partial) {
	t.Helper()
	may := bounds.Bound(clone(p))
	propagated = clone(p)
	propagated.Forced = of(s.width(), 0) // to be cleared
	infeasible = bounds.Infeasible(propagated, effort)
	about := func(set bitset.Set) string {
		return fmt.Sprintf("%s\nchosen %b possible %b left %d: %b is %s; may be %s, infeasible: %t, possible %b, required %b",
			s.text, p.Chosen, p.Domain, p.Left, set, s.outcome(t, set), may, infeasible, propagated.Domain, propagated.Forced)
	}
	completions(p, len(s.all), 0, func(set bitset.Set) {
		is := s.outcome(t, set)
		if is&^may != 0 {
			require.Fail(t, "bound is wrong", about(set))
		}
		if is == bound.False {
			return
		}
		joined := append(bitset.Set{}, propagated.Chosen...)
		joined.Join(propagated.Domain)
		for i := range s.all {
			switch {
			case infeasible:
				require.Fail(t, "not infeasible", about(set))
			case set.Has(i) && !joined.Has(i):
				require.Fail(t, "removed wrongly", about(set))
			case propagated.Forced.Has(i) && !set.Has(i):
				require.Fail(t, "required wrongly", about(set))
			}
		}
	})
	require.Equal(t, p.Chosen, propagated.Chosen, s.text)
	if !infeasible {
		require.Zero(t, propagated.Forced.CountAnd(propagated.Chosen), "what is chosen need not be required")
		require.Equal(t, propagated.Forced.Count(), propagated.Forced.CountAnd(propagated.Domain), "what is required is possible")
	}
	return infeasible, propagated
}

// checkAll checks all partial sets. It returns the number of infeasible partial sets and of partial sets with required devices.
func (s *sound) checkAll(t tester) (infeasible, requiring int) {
	t.Helper()
	bounds := s.bounds(t)
	s.each(func(p bound.Partial) {
		for _, effort := range []bound.Effort{bound.Quick, bound.Thorough} {
			is, propagated := s.check(t, bounds, p, effort)
			if is {
				infeasible++
			} else if !propagated.Forced.IsEmpty() {
				requiring++
			}
		}
	})
	return infeasible, requiring
}

// positions returns the indexes of the devices in a set.
func positions(set bitset.Set) []int {
	return slices.AppendSeq([]int{}, set.All())
}

// upTo returns the numbers below n.
func upTo(n int) []int {
	result := make([]int, n)
	for i := range result {
		result[i] = i
	}
	return result
}
