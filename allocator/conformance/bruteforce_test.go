// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/conformance/bruteforce"
	"github.com/celset/celset/allocator/conformance/scenario"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
)

func TestSameAsBruteForce(t *testing.T) {
	t.Parallel()
	coverage := newTally(func(c *scenario.Case) outcome { return ours(c) })
	cases.CheckN(t, some(), func(t *rapid.T) {
		c := drawCase(t, scenario.CEL)
		want := sameAsBruteForce(t, c)
		coverage.add(t.Name(), c, want)
		requireSameWithReasons(t, c, want)
		// Without CEL constraints, a reference to one is a matchAttribute with an attribute that no device has.
		sameAsUpstream(t, c, allocator.WithoutCELConstraints())
	})
	coverage.requireTraits(t, "derived attributes", "compatibility groups", "request policies", "valid values", "steps", "maximum", "alternative over the limit", string(fatal))
}

// TestBruteForceSameAsUpstream compares the brute force search with upstream's allocators, for claims without CEL constraints.
func TestBruteForceSameAsUpstream(t *testing.T) {
	t.Parallel()
	cases.CheckN(t, some(), func(t *rapid.T) {
		c := drawCase(t, scenario.Sound)
		stripListed(c)
		theirs := upstream(experimental, c)
		if stripRefusals(c, theirs) {
			theirs = upstream(experimental, c)
		}
		requireSolution(t, c, translated(c, theirs), "upstream's allocator")
	})
}

// TestEvaluationFails checks expressions that fail for some sets. The allocator and the brute force search must return the same
// solution or both fail. The brute force search evaluates each set as soon as it is complete, even if later requests can't be
// met.
func TestEvaluationFails(t *testing.T) {
	t.Parallel()
	for name, profile := range map[string]scenario.Profile{"enough devices": scenario.FailingCEL, "too few devices": scenario.HopelessCEL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failed, later, unmet, aboutNode, inVariables, prepared, all := 0, 0, 0, 0, 0, 0, 0
			cases.CheckN(t, some(), func(t *rapid.T) {
				c := drawCase(t, profile)
				all++
				p := problem(c)
				p.Eager = true
				want, err := bruteforce.Solve(p)
				requireSame(t, c, want, err, ours(c), "our allocator")
				if result, ok := oursPrepared(c); ok {
					prepared++
					requireSame(t, c, want, err, result, "our allocator with prepared claims")
				}
				if evaluation, ok := errors.AsType[*bruteforce.EvaluationError](err); ok {
					failed++
					if evaluation.AboutNode {
						aboutNode++
						with := ours(c, allocator.WithReasons())
						require.Equal(t, onNode, with.kind, "with reasons: %v", with)
						require.ErrorAs(t, with.err, new(*allocator.EvaluationError))
					}
					if hasVariables(c) {
						inVariables++
					}
					if evaluation.Evaluation > 1 {
						later++
					}
					if _, err := solve(c); err == nil {
						unmet++
					}
				}
			})
			t.Logf("of %d cases %d fail, %d not on the first set, %d on sets with which the claims can't be met, %d for the node only, %d with variables",
				all, failed, later, unmet, aboutNode, inVariables)
			if all < minimalCases {
				return
			}
			require.Greater(t, failed, all/20)
			require.Greater(t, later, all/200)
			require.Greater(t, unmet, all/200)
			require.Greater(t, aboutNode, all/40)
			require.Greater(t, inVariables, all/40)
			require.Greater(t, prepared, all*3/4)
		})
	}
}

func hasVariables(c *scenario.Case) bool {
	return slices.ContainsFunc(c.Definitions(), func(def *v1alpha1.CELDeviceConstraint) bool { return len(def.Variables) > 0 })
}

func solve(c *scenario.Case) (bruteforce.Solution, error) { return bruteforce.Solve(problem(c)) }

func problem(c *scenario.Case) bruteforce.Problem {
	return bruteforce.Problem{
		Features: c.Features, Node: c.Node, Slices: c.Slices, Classes: c.Classes, Claims: c.Claims,
		State: c.State(),
	}
}

// sameAsBruteForce requires that our allocator finds the same devices as the brute force search, and returns our outcome.
func sameAsBruteForce(t require.TestingT, c *scenario.Case) outcome {
	got := ours(c)
	requireSolution(t, c, got, "our allocator")
	return got
}

// requireSolution compares the devices that an allocator found with the brute force solution.
func requireSolution(t require.TestingT, c *scenario.Case, got outcome, who string) {
	want, err := solve(c)
	requireSame(t, c, want, err, got, who)
}

func requireSame(t require.TestingT, c *scenario.Case, want bruteforce.Solution, err error, got outcome, who string) {
	wantKind := none
	if evaluation, ok := errors.AsType[*bruteforce.EvaluationError](err); ok && evaluation.AboutNode {
		require.Equal(t, outcome{kind: none}, got, "%s: an expression fails and the node does not fit\ncase:\n%s", who, c)
		return
	}
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		wantKind = onNode
	case err != nil:
		wantKind = fatal
	case want.Found:
		wantKind = found
	case want.InvalidPools:
		wantKind = onNode
	}
	if diff := cmp.Diff(want.Claims, picks(got.results)); wantKind != got.kind || diff != "" {
		require.Failf(t, "mismatch", "%s does not agree with brute force\nwant: %s, error: %v\ngot: %v\ndevices (-want +got):\n%s\ncase:\n%s",
			who, wantKind, err, got, diff, c)
	}
}

// picks returns the devices in allocation results, or nil if there are no results.
func picks(results []resourceapi.AllocationResult) [][]bruteforce.Pick {
	if results == nil {
		return nil
	}
	claims := make([][]bruteforce.Pick, 0, len(results))
	for _, result := range results {
		devices := make([]bruteforce.Pick, 0, len(result.Devices.Results))
		for _, d := range result.Devices.Results {
			devices = append(devices, bruteforce.Pick{
				Request: d.Request, Driver: d.Driver, Pool: d.Pool, Device: d.Device,
				AdminAccess: ptr.Deref(d.AdminAccess, false),
			})
		}
		claims = append(claims, devices)
	}
	return claims
}
