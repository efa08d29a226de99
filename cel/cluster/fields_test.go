// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/transcript"
)

func TestUnknownFields(t *testing.T) {
	transcript.Run(t, filepath.Join("testdata", "fields.txt"), func(t *testing.T, expression string) string {
		selector, err := environment.Compile(t.Context(), expressions(expression), nil)
		if err != nil {
			return "does not compile: " + describeError(err)
		}
		var all []string
		for _, unknown := range selector.UnknownFields() {
			require.Equal(t, "celSelector.celExpressions[0]", unknown.Path.String())
			all = append(all, unknown.Err.Error())
		}
		return strings.Join(all, ", and ")
	})
}

// TestUnknownFieldsAreBounded has an expression with hundreds of unknown fields.
func TestUnknownFieldsAreBounded(t *testing.T) {
	var parts []string
	for i := range 500 {
		parts = append(parts, fmt.Sprintf("managedCluster.%s%d == 1", strings.Repeat("x", 100), i))
	}
	selector, err := environment.Compile(t.Context(), expressions(strings.Join(parts, " && ")), nil)
	require.NoError(t, err)
	unknown := selector.UnknownFields()
	require.Len(t, unknown, 8)
	require.Less(t, len(unknown[0].Error()), 400)
}
