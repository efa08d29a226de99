// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/conformance/scenario"
)

// sampling is how many cases there are for each one whose traits are looked at:
// that takes more time than comparing.
const sampling = 8

// tally counts what the cases of a test were like.
type tally struct {
	allocate func(*scenario.Case) outcome
	cases    int
	outcomes map[kind]int
	traits   map[string]*traitCount
}

// traitCount counts the cases with a trait, among those looked at.
type traitCount struct {
	outcomes map[kind]int
	// mattered counts those with another outcome when the trait is removed.
	mattered int
}

func newTally(allocate func(*scenario.Case) outcome) *tally {
	t := &tally{allocate: allocate, outcomes: map[kind]int{}, traits: map[string]*traitCount{}}
	for _, trait := range scenario.Traits {
		t.traits[trait.Name] = &traitCount{outcomes: map[kind]int{}}
	}
	return t
}

func (t *tally) add(c *scenario.Case, o outcome) {
	t.outcomes[o.kind]++
	t.cases++
	if t.cases%sampling != 0 {
		return
	}
	for _, trait := range scenario.Traits {
		without := c.Clone()
		if !trait.Strip(without) {
			continue
		}
		count := t.traits[trait.Name]
		count.outcomes[o.kind]++
		if !t.allocate(without).equal(o) {
			count.mattered++
		}
	}
}

// require logs the counts and fails the test if they show that the generator has
// degenerated. The traits named in except need not occur.
func (t *tally) require(tb testing.TB, except ...string) {
	tb.Logf("%d cases\n%s", t.cases, t)
	if t.cases < 5000 {
		tb.Logf("too few cases to judge whether they cover enough")
		return
	}
	require.InDelta(tb, 0.45, float64(t.outcomes[found])/float64(t.cases), 0.15, "share of cases that can be allocated")
	for _, k := range kinds {
		require.Greater(tb, t.outcomes[k], t.cases/200, "cases with outcome %s", k)
	}
	enough := t.cases / sampling / 500
	for _, trait := range scenario.Traits {
		if slices.Contains(except, trait.Name) {
			continue
		}
		count := t.traits[trait.Name]
		require.GreaterOrEqual(tb, count.outcomes[found], enough, "allocated cases with trait %s", trait.Name)
		require.GreaterOrEqual(tb, count.outcomes[none], enough, "cases with trait %s that can't be allocated", trait.Name)
		require.GreaterOrEqual(tb, count.mattered, enough, "cases in which trait %s matters", trait.Name)
	}
}

func (t *tally) String() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, outcomes map[kind]int, mattered any) {
		fmt.Fprintf(w, "%s\t", name)
		for _, k := range kinds {
			fmt.Fprintf(w, "%d\t", outcomes[k])
		}
		fmt.Fprintf(w, "%v\t\n", mattered)
	}
	fmt.Fprintf(w, "\t%s\t%s\t%s\t%s\tmattered\t\n", found, none, onNode, fatal)
	row("all cases", t.outcomes, "")
	for _, trait := range scenario.Traits {
		row(trait.Name, t.traits[trait.Name].outcomes, t.traits[trait.Name].mattered)
	}
	w.Flush()
	return text.String()
}
