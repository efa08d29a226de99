// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator/conformance/scenario"
	"github.com/celset/celset/internal/testing/cases"
)

const (
	// sampling is the distance between cases whose traits are examined: one case of this many. Examining a case takes longer
	// than comparing its outcomes.
	sampling = 10
	// minimalCases is the number of cases below which coverage is not checked, because the counts would depend on chance.
	minimalCases = 1_500
)

// A tally counts the cases of a test by their properties. It is safe for concurrent use.
type tally struct {
	allocate func(*scenario.Case) outcome

	mutex    sync.Mutex
	cases    int
	of       map[string]int // cases by the test that drew them
	outcomes counts
	gates    map[string]*coverage
	traits   map[string]*coverage
}

// counts maps the kind of an outcome to a number of cases.
type counts map[kind]int

// coverage counts the cases with a property (present). It also counts those whose outcome changes if the property is removed
// (mattered). Both are counted by the kind of the original outcome.
type coverage struct {
	present, mattered counts
}

func newTally(allocate func(*scenario.Case) outcome) *tally {
	t := &tally{allocate: allocate, of: map[string]int{}, outcomes: counts{}, gates: map[string]*coverage{}, traits: map[string]*coverage{}}
	for _, gate := range scenario.Gates {
		t.gates[gate.Name] = &coverage{counts{}, counts{}}
	}
	for _, trait := range scenario.Traits {
		t.traits[trait.Name] = &coverage{counts{}, counts{}}
	}
	return t
}

// add counts a case of the named test. It samples every tenth case of each test separately, so that parallel tests are judged
// by the same cases in each run.
func (t *tally) add(test string, c *scenario.Case, o outcome) {
	t.mutex.Lock()
	t.outcomes[o.kind]++
	t.cases++
	t.of[test]++
	sampled := t.of[test]%sampling == 0
	t.mutex.Unlock()
	for _, gate := range scenario.Gates {
		if gate.IsUsed(c) {
			t.compare(t.gates[gate.Name], gate.Flip(c), o)
		}
	}
	for _, trait := range scenario.Traits {
		if !sampled && !trait.IsRare() {
			continue
		}
		if without := c.Clone(); trait.Strip(without) {
			t.compare(t.traits[trait.Name], without, o)
		}
	}
}

func (t *tally) compare(with *coverage, without *scenario.Case, o outcome) {
	mattered := !t.allocate(without).equal(o)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	with.present[o.kind]++
	if mattered {
		with.mattered[o.kind]++
	}
}

// requireGates logs in how many cases each feature mattered, and fails the test if there are too few such cases.
func (t *tally) requireGates(tb testing.TB) {
	tb.Logf("%d cases, and those in which a feature mattered: on instead of off, or the reverse, the outcome is another\n%s", t.cases, t.gateTable())
	if t.cases < minimalCases {
		return
	}
	for _, gate := range scenario.Gates {
		mattered := t.gates[gate.Name].mattered
		require.GreaterOrEqual(tb, mattered[found], t.cases/100, "allocated cases in which feature %s matters", gate.Name)
		require.GreaterOrEqual(tb, mattered.failures(), t.cases/100, "cases that can't be allocated in which feature %s matters", gate.Name)
	}
}

// requireTraits logs the counts, and fails the test if too few cases have a trait or an outcome that is not in except.
func (t *tally) requireTraits(tb testing.TB, except ...string) {
	tb.Logf("one in %d of the cases, and those in which a trait mattered: without it the outcome is another\n%s", sampling, t.traitTable())
	if t.cases < minimalCases {
		tb.Logf("too few cases to judge whether they cover enough")
		return
	}
	require.InDelta(tb, 0.45, float64(t.outcomes[found])/float64(t.cases), 0.15, "share of cases that can be allocated")
	for _, k := range kinds {
		if slices.Contains(except, string(k)) {
			continue
		}
		require.Greater(tb, t.outcomes[k], t.cases/200, "cases with outcome %s", k)
	}
	// In the nightly run, the seed changes and the counts of the rarest traits depend on chance.
	enough := cases.Of(max(1, t.cases/sampling/500), 1)
	for _, trait := range scenario.Traits {
		if slices.Contains(except, trait.Name) {
			continue
		}
		c := t.traits[trait.Name]
		require.GreaterOrEqual(tb, c.present[found], enough, "allocated cases with trait %s", trait.Name)
		require.GreaterOrEqual(tb, c.present.failures(), enough, "cases with trait %s that can't be allocated", trait.Name)
		require.GreaterOrEqual(tb, c.mattered[found]+c.mattered.failures(), enough, "cases in which trait %s matters", trait.Name)
	}
}

func (c counts) failures() int { return c[none] + c[onNode] + c[fatal] }

func (t *tally) gateTable() string {
	return table(func(w io.Writer) {
		fmt.Fprintf(w, "\tallocated\tnot allocated\t%s\t%s\t%s\t\n", none, onNode, fatal)
		row := func(name string, c counts) {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t\n", name, c[found], c.failures(), c[none], c[onNode], c[fatal])
		}
		row("all cases", t.outcomes)
		for _, gate := range scenario.Gates {
			row(gate.Name, t.gates[gate.Name].mattered)
		}
	})
}

func (t *tally) traitTable() string {
	return table(func(w io.Writer) {
		fmt.Fprintf(w, "\t%s\t%s\t%s\t%s\tmattered, %s\tmattered, not %s\t\n", found, none, onNode, fatal, found, found)
		for _, trait := range scenario.Traits {
			c := t.traits[trait.Name]
			name := trait.Name
			if trait.IsRare() {
				name += ", of all cases"
			}
			fmt.Fprintf(w, "%s\t", name)
			for _, k := range kinds {
				fmt.Fprintf(w, "%d\t", c.present[k])
			}
			fmt.Fprintf(w, "%d\t%d\t\n", c.mattered[found], c.mattered.failures())
		}
	})
}

func table(write func(io.Writer)) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	write(w)
	w.Flush()
	return text.String()
}
