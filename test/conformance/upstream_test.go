// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/test/conformance/scenario"
)

func TestSameAsUpstream(t *testing.T) {
	t.Parallel()
	coverage := newTally(func(c *scenario.Case) outcome { return upstream(experimental, c) })
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t, scenario.Upstream)
		coverage.add(c, sameAsUpstream(t, c))
	})
	coverage.require(t, "CEL constraint")
}

// FuzzSameAsUpstream lets the fuzzer look for cases that reach code which random
// ones don't.
func FuzzSameAsUpstream(f *testing.F) {
	// What a case is made from has some thousand bytes, which the fuzzer would hardly
	// come up with by itself.
	for seed := range byte(8) {
		input := make([]byte, 16<<10)
		if _, err := rand.NewChaCha8([32]byte{seed}).Read(input); err != nil {
			f.Fatal(err)
		}
		f.Add(input)
	}
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		sameAsUpstream(t, drawCase(t, scenario.Upstream))
	}))
}

// drawCase draws a case, which is stored if the test fails and storing is asked
// for. Reducing a failure ends with the smallest case, so that is what stays.
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

// sameAsUpstream compares all that can be compared and returns the outcome.
func sameAsUpstream(t require.TestingT, c *scenario.Case, options ...allocator.Option) outcome {
	before := c.Clone()
	want := upstream(experimental, c)
	requireEqual(t, c, want, ours(c, options...), "experimental is right, ours is not")
	if incubatingComparable(c) {
		requireEqual(t, c, upstream(incubating, c), want, "incubating is right, experimental and ours are not")
	}
	requireSameWithReasons(t, c, want, options...)
	requireUnmodified(t, before, c)
	return want
}

// incubatingComparable tells whether that variant knows all that the case uses.
// It hands out devices of slices with skipNodeOperations as if the field were not
// there; the experimental variant does not while the feature is off.
func incubatingComparable(c *scenario.Case) bool {
	for _, slice := range c.Slices {
		if len(slice.Spec.SkipNodeOperations) > 0 {
			return false
		}
	}
	return !c.Features.OptionalNodeOperations
}

// requireSameWithReasons checks that asking for reasons changes nothing but turns
// no answer into an error for the node.
func requireSameWithReasons(t require.TestingT, c *scenario.Case, want outcome, options ...allocator.Option) {
	if want.kind == none {
		want.kind = onNode
	}
	requireEqual(t, c, want, ours(c, append(options, allocator.WithReasons())...), "ours gives another answer when asked for reasons")
}

// requireUnmodified also holds upstream to its word: what it modified, the next
// allocator would see.
func requireUnmodified(t require.TestingT, before, after *scenario.Case) {
	if !equality.Semantic.DeepEqual(before, after) {
		require.Failf(t, "input modified", "by one of the allocators (-before +after):\n%s", cmp.Diff(before, after))
	}
}
