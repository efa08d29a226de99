// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package filter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/placement/internal/finding"
)

// TestDescriptions checks that the description of each filter starts with the name that results use for the filter.
func TestDescriptions(t *testing.T) {
	require.Regexp(t, "^"+finding.Predicate+" removes clusters .*[.]$", Predicates{}.Describe())
	require.Regexp(t, "^"+finding.TaintToleration+" removes clusters .*[.]$", (&Tolerations{}).Describe())
}
