// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// generatedPattern matches a line of .gitattributes that marks generated files.
	generatedPattern = regexp.MustCompile(`(?m)^(\S+) linguist-generated$`)
	// generatedMark matches the mark that tools recognize, as a comment in Go, YAML or Markdown in the first six lines. A
	// build tag and the license come first in Go.
	generatedMark = regexp.MustCompile(`(?m)\A(?:.*\n){0,5}(//|#|<!--) Code generated .* DO NOT EDIT\.( -->)?$`)
	// unmarked lists the extensions of files that can't have comments.
	unmarked = []string{".json", ".log", ".txt"}
)

// TestGeneratedFilesAreMarked checks that each generated file has two marks: a comment, for readers of the file, and a line in
// .gitattributes, for readers of a diff.
func TestGeneratedFilesAreMarked(t *testing.T) {
	root := os.DirFS("../..")
	attributes, err := fs.ReadFile(root, ".gitattributes")
	require.NoError(t, err)
	var generated []string
	for _, line := range generatedPattern.FindAllSubmatch(attributes, -1) {
		files, err := fs.Glob(root, string(line[1]))
		require.NoError(t, err)
		require.NotEmpty(t, files, "%s is in .gitattributes, and there is none", line[1])
		generated = append(generated, files...)
	}
	require.NoError(t, fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (path == ".git" || path == "bin" || path == "dist" || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() || slices.Contains(unmarked, filepath.Ext(path)) {
			return nil
		}
		content, err := fs.ReadFile(root, path)
		require.Equal(t, slices.Contains(generated, path), generatedMark.Match(content),
			"%s: what is generated has the mark, and a line in .gitattributes; nothing else has", path)
		return err
	}))
}

// TestNothingOfTestsIsShipped checks that packages outside of these folders don't import packages inside.
func TestNothingOfTestsIsShipped(t *testing.T) {
	tests := []string{module + "/internal/testing", module + "/test", module + "/allocator/conformance", module + "/allocator/internal/fixture"}
	packages, err := list()
	require.NoError(t, err)
	for path, p := range packages {
		if !under(path, module) || underAny(path, tests) {
			continue
		}
		for _, dependency := range p.Deps {
			if underAny(dependency, tests) {
				t.Errorf("%s must not depend on %s, which is for tests", path, dependency)
			}
		}
	}
}

// TestInternalIsShipped checks that each package below internal is part of a program. Packages that only tests use must be
// below internal/testing.
func TestInternalIsShipped(t *testing.T) {
	var shipped []string
	packages, err := list()
	require.NoError(t, err)
	for path, p := range packages {
		if under(path, module) && !under(path, module+"/test") && p.Name == "main" {
			shipped = append(append(shipped, path), p.Deps...)
		}
	}
	for path := range packages {
		if under(path, module+"/internal") && !under(path, module+"/internal/testing") && !slices.Contains(shipped, path) {
			t.Errorf("%s is in no program: if tests use it, it belongs below internal/testing", path)
		}
	}
}
