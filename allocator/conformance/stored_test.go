// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/conformance/scenario"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
)

// TestStoredCases replays the cases in testdata. They are instructive or have failed in the past.
func TestStoredCases(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			c, err := scenario.Load(path)
			require.NoError(t, err)
			require.NotEmpty(t, c.Description, "a stored case says what it is about")
			var got outcome
			if hasCELConstraints(c) {
				got = sameAsBruteForce(t, c)
				sameAsUpstream(t, c, allocator.WithoutCELConstraints())
			} else {
				got = sameAsUpstream(t, c)
			}
			require.Equal(t, c.Outcome, string(got.kind), "outcome: %v", got)
		})
	}
}

func hasCELConstraints(c *scenario.Case) bool {
	for _, claim := range c.Claims {
		if v1alpha1.HasReference(claim) {
			return true
		}
	}
	return false
}

// storeFolder is the folder where tests store failing cases. If it is empty, they store no cases.
var storeFolder = flag.String("conformance.store", "", "folder to store the reduced case of a failure in, such as testdata")

func TestMain(m *testing.M) {
	// The tests allocate many short-lived objects. Collecting garbage less often saves time and costs little memory.
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// some returns the number of cases of each test. The comparison with a variant of upstream uses 2.5 times as many.
func some() int { return cases.Of(3000, 20_000) }
