// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// served is what API servers said that they have, by minor version; see package test/versions.
type served map[string]struct {
	Kinds, Fields, Functions []string
}

// servedBy reads what is written down of the versions.
func servedBy(t *testing.T, minors []string) served {
	t.Helper()
	all := served{}
	for _, minor := range minors {
		content, err := os.ReadFile(filepath.Join("..", "versions", "testdata", minor+".yaml"))
		require.NoError(t, err)
		of := all[minor]
		require.NoError(t, yaml.UnmarshalStrict(content, &of))
		require.NotEmpty(t, of.Kinds)
		all[minor] = of
	}
	return all
}

// differences is a table of what some of the versions don't have.
func (s served) differences(minors []string) string {
	table := "| | " + strings.Join(minors, " | ") + " |\n|---" + strings.Repeat("|---", len(minors)) + "|\n"
	list := func(what string, of func(minor string) []string) {
		var all []string
		for _, minor := range minors {
			all = append(all, of(minor)...)
		}
		slices.Sort(all)
		for _, each := range slices.Compact(all) {
			row, everywhere := "| "+what+" "+each, true
			for _, minor := range minors {
				has := slices.Contains(of(minor), each)
				everywhere = everywhere && has
				row += map[bool]string{true: " | yes", false: " | –"}[has]
			}
			if !everywhere {
				table += row + " |\n"
			}
		}
	}
	list("kind", func(minor string) (kinds []string) {
		for _, kind := range s[minor].Kinds {
			kinds = append(kinds, "`"+kind+"`")
		}
		return kinds
	})
	list("field", func(minor string) (fields []string) {
		for _, field := range s[minor].Fields {
			// Of a type that is new, the field tells that has it.
			if kind, _, _ := strings.Cut(field, "."); s.everywhere(kind) {
				fields = append(fields, "`"+field+"`")
			}
		}
		return fields
	})
	list("CEL:", func(minor string) []string { return s[minor].Functions })
	return table
}

// everywhere tells whether all versions have fields of a type.
func (s served) everywhere(kind string) bool {
	for _, of := range s {
		if !slices.ContainsFunc(of.Fields, func(field string) bool { return strings.HasPrefix(field, kind+".") }) {
			return false
		}
	}
	return true
}
