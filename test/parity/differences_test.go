// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
)

// root is the root of the module.
var root = filepath.Join("..", "..")

// A row is a row of a table in a page about differences.
type row struct {
	line int
	// matter is the text of the first cell, which names the difference. tests are the tests in the last cell. cells are the
	// cells in between.
	matter string
	cells  []string
	tests  []testName
}

// A testName is the name of a test function and the folder of its package.
type testName struct{ folder, function string }

const header = "| matter | OCM | celset | tests |"

func TestDifferencesAreTested(t *testing.T) {
	requireTested(t, "ocm.md", header, 29, ".")
}

// TestUpstreamsMattersAreTested checks docs/differences.md. The second cell of a row must be the number of an upstream issue, or
// "as above". The last cell must name existing tests.
func TestUpstreamsMattersAreTested(t *testing.T) {
	requireTested(t, "differences.md", "| matter | upstream | in 1.37.2 | in celset | tests |", 6, `kubernetes/kubernetes#\d{6}`)
	requireTested(t, "differences.md", "| matter | upstream | what happens | what helps | tests |", 2, `kubernetes/kubernetes#\d{6}|^as above$`)
}

// requireTested requires that each row in the page's tables names existing tests. The cell after the difference must match the
// regular expression first.
func requireTested(t *testing.T, name, header string, atLeast int, first string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", name))
	require.NoError(t, err)
	rows := rowsOf(string(page), header)
	require.GreaterOrEqual(t, len(rows), atLeast, "a table is not read any more")
	known := map[string]sets.Set[string]{}
	matters := sets.New[string]()
	for _, r := range rows {
		t.Run(r.matter, func(t *testing.T) {
			require.False(t, matters.Has(r.matter), "line %d: the matter is listed twice", r.line)
			matters.Insert(r.matter)
			require.NotEmpty(t, r.tests, "line %d names no test; write `folder.TestName`", r.line)
			require.NotContains(t, r.cells, "", "line %d has an empty cell", r.line)
			require.Regexp(t, first, r.cells[0], "line %d", r.line)
			for _, name := range r.tests {
				if known[name.folder] == nil {
					known[name.folder] = testsIn(t, name.folder)
				}
				require.True(t, known[name.folder].Has(name.function), "line %d: there is no %s in %s", r.line, name.function, name.folder)
			}
		})
	}
}

var quoted = regexp.MustCompile("^`([a-z0-9/]+)\\.(Test\\w+)`$")

// rowsOf returns the rows of all tables with the header. A malformed row gets no tests. A row is malformed if it has a wrong
// number of cells, or a text in the last cell that is no test.
func rowsOf(page, header string) []row {
	var result []row
	inTable := false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case line == header:
			inTable = true
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case inTable && !strings.HasPrefix(line, "|--"):
			result = append(result, rowOf(i+1, line, header))
		}
	}
	return result
}

func rowOf(number int, line, header string) row {
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	result := row{line: number, matter: cells[0]}
	if len(cells) != strings.Count(header, "|")-1 {
		return result
	}
	last := len(cells) - 1
	result.cells = cells[1:last]
	for _, text := range strings.Split(cells[last], ", ") {
		match := quoted.FindStringSubmatch(text)
		if match == nil {
			result.tests = nil
			return result
		}
		result.tests = append(result.tests, testName{match[1], match[2]})
	}
	return result
}

// testsIn returns the names of the test functions in a folder of the module.
func testsIn(t *testing.T, folder string) sets.Set[string] {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "the folder %s has no tests", folder)
	result := sets.New[string]()
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range parsed.Decls {
			if function, ok := declaration.(*ast.FuncDecl); ok && isTest(function) {
				result.Insert(function.Name.Name)
			}
		}
	}
	return result
}

// isTest reports whether "go test" runs the function: its name is the name of a test, and it has one parameter.
func isTest(function *ast.FuncDecl) bool {
	if function.Recv != nil || !strings.HasPrefix(function.Name.Name, "Test") || function.Name.Name == "TestMain" {
		return false
	}
	parameters := function.Type.Params.List
	if len(parameters) != 1 {
		return false
	}
	pointer, ok := parameters[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	selector, ok := pointer.X.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "T"
}

// TestRowsThatAreWrongHaveNoTests checks that rowsOf returns no tests for malformed rows.
func TestRowsThatAreWrongHaveNoTests(t *testing.T) {
	for name, line := range map[string]string{
		"none":          "| a | b | c | |",
		"prose":         "| a | b | c | it is tested |",
		"without quote": "| a | b | c | placement.TestSpread |",
		"one of two":    "| a | b | c | `placement.TestSpread`, and more |",
		"no folder":     "| a | b | c | `TestSpread` |",
		"too few cells": "| a | b | `placement.TestSpread` |",
		"too many":      "| a | b | c | `placement.TestSpread` | d |",
	} {
		t.Run(name, func(t *testing.T) {
			rows := rowsOf("# page\n\n"+header+"\n|---|---|---|---|\n"+line+"\n\ntext\n| a | b |\n", header)
			require.Len(t, rows, 1)
			require.Equal(t, "a", rows[0].matter)
			require.Empty(t, rows[0].tests)
		})
	}
	rows := rowsOf(header+"\n|---|---|---|---|\n| a | b | c | `placement.TestSpread`, `cel/cluster.TestScores` |", header)
	require.Equal(t, []testName{{"placement", "TestSpread"}, {"cel/cluster", "TestScores"}}, rows[0].tests)
	require.False(t, testsIn(t, "placement").Has("TestThatIsNotThere"))
}
