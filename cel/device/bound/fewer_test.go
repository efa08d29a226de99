// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"flag"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// CheckFewer is rapid.Check with a fifth of the cases, for properties each case of which
// compiles an expression and looks at many sets.
func CheckFewer(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	before, err := strconv.Atoi(checks.String())
	require.NoError(t, err)
	require.NoError(t, checks.Set(strconv.Itoa(max(1, before/5))))
	defer func() { require.NoError(t, checks.Set(strconv.Itoa(before))) }()
	rapid.Check(t, property)
}
