// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/conformance/scenario"
	"github.com/celset/celset/internal/testing/cases"
)

func TestSameAsUpstream(t *testing.T) {
	t.Parallel()
	coverage := newTally(func(c *scenario.Case) outcome { return ours(c) })
	t.Run("variants", func(t *testing.T) {
		for v, profile := range map[variant]scenario.Profile{incubating: scenario.Beta, experimental: scenario.Alpha} {
			t.Run(string(v), func(t *testing.T) {
				t.Parallel()
				cases.CheckN(t, some()*5/2, func(t *rapid.T) {
					c := drawCase(t, profile)
					coverage.add(string(v), c, sameAsUpstream(t, c))
				})
			})
		}
	})
	coverage.requireGates(t)
	coverage.requireTraits(t, "CEL constraint", "default constraint")
}

// TestSameAsUpstreamWithBounds compares searches that our allocator shortens: too few devices, equal requests, constraints. A
// shorter search must not hide an error of a selector that fails for a device in the skipped part.
func TestSameAsUpstreamWithBounds(t *testing.T) {
	t.Parallel()
	all, shorter := 0, map[kind]int{}
	cases.CheckN(t, some(), func(t *rapid.T) {
		c := drawCase(t, scenario.Hopeless)
		want, theirs := upstreamWithSteps(experimental, c)
		got, stats := oursWithStats(c)
		if want = translated(c, want); !want.equal(got) {
			requireListed(t, c, want, got)
			return
		}
		if !stripListed(c.Clone()) {
			require.LessOrEqual(t, stats.Steps, max(theirs, 1), "our search is longer than upstream's for case:\n%s", c)
		}
		all++
		if stats.Steps*2 < theirs {
			shorter[got.kind]++
		}
	})
	t.Logf("of %d cases our search took less than half of upstream's steps in: %v", all, shorter)
	if all < minimalCases {
		return
	}
	require.Greater(t, shorter[none], all/20, "cases in which a bound cut a search that found nothing")
	require.Greater(t, shorter[found], all/1000, "cases in which a bound cut a search that found something")
	require.Greater(t, shorter[fatal], all/1000, "cases in which a bound cut a search that failed")
}

// FuzzSameAsUpstream lets the fuzzer search for cases that reach code which random cases don't reach.
func FuzzSameAsUpstream(f *testing.F) {
	// Drawing a case takes some thousand bytes. The fuzzer hardly finds such inputs by itself, so start with random inputs.
	for seed := range byte(8) {
		input := make([]byte, 16<<10)
		if _, err := rand.NewChaCha8([32]byte{seed}).Read(input); err != nil {
			f.Fatal(err)
		}
		f.Add(input)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		sameAsUpstream(t, drawCase(t, scenario.Alpha))
	}))
}

// drawCase draws a case. If the test fails and a folder is set, it stores the case. The smallest case is stored last.
func drawCase(t *rapid.T, profile scenario.Profile) *scenario.Case {
	c := scenario.Cases(profile).Draw(t, "case")
	t.Cleanup(func() {
		if *storeFolder == "" || !t.Failed() {
			return
		}
		if err := c.Store(filepath.Join(*storeFolder, "failure-"+filepath.Base(t.Name())+".yaml")); err != nil {
			t.Logf("case can't be stored: %v", err)
		}
	})
	return c
}

// sameAsUpstream compares our allocator with the variants of upstream's, with and without reasons. It returns our outcome.
func sameAsUpstream(t require.TestingT, c *scenario.Case, options ...allocator.Option) outcome {
	before := c.Clone()
	want, got := translated(c, upstream(experimental, c)), ours(c, options...)
	if !want.equal(got) {
		requireListed(t, c, want, got, options...)
	}
	if incubatingComparable(c) {
		requireEqual(t, c, translated(c, upstream(incubating, c)), want, "incubating is right, experimental is not")
	}
	requireSameWithReasons(t, c, got, options...)
	requireUnmodified(t, before, c)
	return got
}

// incubatingComparable reports whether the incubating variant supports the whole case. It ignores skipNodeOperations of slices,
// but the experimental variant does not while the feature is off. See docs/differences.md.
func incubatingComparable(c *scenario.Case) bool {
	for _, slice := range c.Slices {
		if len(slice.Spec.SkipNodeOperations) > 0 {
			return false
		}
	}
	f := c.Features
	return !f.CompatibilityGroups && !f.DerivedAttributes && !f.ListTypeAttributes && !f.OptionalNodeOperations
}

// requireSameWithReasons checks that the option WithReasons only turns "does not fit" into an error about the node.
func requireSameWithReasons(t require.TestingT, c *scenario.Case, want outcome, options ...allocator.Option) {
	if want.kind == none {
		want.kind = onNode
	}
	requireEqual(t, c, want, ours(c, append(options, allocator.WithReasons())...), "ours gives another answer when asked for reasons")
}

// requireUnmodified checks that upstream did not modify its input, because the next allocator reads the same input.
func requireUnmodified(t require.TestingT, before, after *scenario.Case) {
	if !equality.Semantic.DeepEqual(before, after) {
		require.Failf(t, "input modified", "by upstream's allocator (-before +after):\n%s", cmp.Diff(before, after))
	}
}

// panicked is the outcome if upstream's allocator panics, which some input does that the API forbids.
const panicked kind = "panic"

// TestDifferences checks the differences in docs/differences.md between our allocator and upstream's. It fails if an upgrade of
// upstream removes one of them.
func TestDifferences(t *testing.T) {
	documentation, err := os.ReadFile(filepath.Join("..", "..", "docs", "differences.md"))
	require.NoError(t, err)
	tests := map[string]struct{ ours, experimental, incubating kind }{
		"admin-access-counters.yaml":        {found, none, none},
		"all-attribute-constraint.yaml":     {none, fatal, fatal},
		"all-backtracking.yaml":             {found, fatal, fatal},
		"all-cel-false.yaml":                {none, fatal, fatal},
		"all-incomplete-pool.yaml":          {onNode, fatal, fatal},
		"all-invalid-pool.yaml":             {onNode, fatal, fatal},
		"all-over-limit.yaml":               {none, fatal, fatal},
		"all-twice-over-limit.yaml":         {none, fatal, fatal},
		"class-selector-empty.yaml":         {fatal, panicked, panicked},
		"count-negative.yaml":               {found, panicked, panicked},
		"default-out-of-range.yaml":         {found, none, none},
		"device-left-its-pool.yaml":         {none, found, found},
		"node-selector-with-two-terms.yaml": {onNode, fatal, fatal},
		"range-with-step-zero.yaml":         {found, panicked, panicked},
		"range-without-minimum.yaml":        {found, panicked, panicked},
		"request-empty.yaml":                {fatal, panicked, panicked},
		"shares-of-a-device-for-one.yaml":   {none, found, found},
		"skip-node-operations.yaml":         {none, none, found},
		"slice-count.yaml":                  {onNode, found, found},
	}
	folder := filepath.Join("testdata", "differences")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := scenario.Load(filepath.Join(folder, name))
			require.NoError(t, err)
			require.Contains(t, string(documentation), name)
			require.Equal(t, c.Outcome, string(test.ours))
			require.Equal(t, test.ours, ours(c).kind, "ours: %v", ours(c))
			require.Equal(t, test.experimental, orPanic(experimental, c), "experimental")
			require.Equal(t, test.incubating, orPanic(incubating, c), "incubating")
		})
	}
	stored, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	require.NoError(t, err)
	require.Len(t, stored, len(tests), "a stored difference is not tested")
}

func orPanic(v variant, c *scenario.Case) (result kind) {
	defer func() {
		if recover() != nil {
			result = panicked
		}
	}()
	return upstream(v, c).kind
}

// TestDifferenceCancellation checks the error after a cancellation. Only our error wraps context.Canceled.
func TestDifferenceCancellation(t *testing.T) {
	c, err := scenario.Load(filepath.Join("testdata", "identical-devices.yaml"))
	require.NoError(t, err)
	cause := errors.New("the node is gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)

	theirs, err := newUpstream(experimental, c)
	require.NoError(t, err)
	_, err = theirs.Allocate(ctx, c.Node, c.Claims)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, context.Canceled)

	a, err := allocator.NewAllocator(ctx, c.Features, c.State(), scenario.ClassLister(c.Classes), c.Slices, selectorCache(c))
	require.NoError(t, err)
	_, err = a.Allocate(ctx, c.Node, c.Claims)
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, context.Canceled)
}
