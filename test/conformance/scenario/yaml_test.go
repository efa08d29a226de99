// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
)

func TestYAMLRoundTrip(t *testing.T) {
	checkCases(t, func(t *rapid.T, _ Profile, c *Case) {
		parsed, err := Parse([]byte(c.String()))
		require.NoError(t, err)
		// Nil or empty makes no difference to allocators.
		if !equality.Semantic.DeepEqual(c, parsed) {
			require.Fail(t, "difference after a round trip (-drawn +parsed)", cmp.Diff(c, parsed))
		}
	})
}

func TestStoreAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new folder", "case.yaml")
	c := Cases(Alpha).Example(1)
	c.Description = "an example"
	require.NoError(t, c.Store(path))
	loaded, err := Load(path)
	require.NoError(t, err)
	require.Equal(t, c.String(), loaded.String())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "# Copyright"))
}

func TestParseErrors(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no node":       {"claims: []", "field node is missing"},
		"unknown field": {"node: {metadata: {name: n}}\nclaim: {}", `unknown field "claim"`},
		"not YAML":      {"node: [", "parse case"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(test.text))
			require.ErrorContains(t, err, test.want)
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "missing.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
