// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxFields is the maximum number of fields of a struct type.
const maxFields = 12

// largeTypes maps each type with more fields to the reason.
var largeTypes = map[string]string{
	"cel.Config":                       "configuration: each field has a default",
	"cmd/celset-placement/app.options": "configuration: a field for each flag",
	"cmd/kubectl-celset/cli.options":   "configuration: a field for each flag",
	"placement/report.Report":          "output: a field for each key of the JSON object",
	"plugin/metrics.Metrics":           "a field for each metric",
}

func TestTypesAreSmall(t *testing.T) {
	root := filepath.Join("..", "..")
	found := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		folder, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (folder == "test" || folder == "bin" || folder == "dist" || folder == "internal/testing" || path != root && strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for node := range ast.Preorder(file) {
			declared, isType := node.(*ast.TypeSpec)
			if !isType {
				continue
			}
			of, isStruct := declared.Type.(*ast.StructType)
			if !isStruct || of.Fields.NumFields() <= maxFields {
				continue
			}
			name := filepath.ToSlash(filepath.Dir(folder)) + "." + declared.Name.Name
			found[name] = true
			assert.NotEmpty(t, largeTypes[name], "%s has %d fields, at most %d are allowed: group those that are used together", name, of.Fields.NumFields(), maxFields)
		}
		return nil
	}))
	for name := range largeTypes {
		assert.True(t, found[name], "%s is no large type any more: remove it from the list", name)
	}
}
