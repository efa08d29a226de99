// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// constantOf reads the value of a constant of the code that need not be exported. It
// may be made of numbers, constants of the same file and the units of package time.
func constantOf(t *testing.T, file, name string) int64 {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", file), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	expression := ""
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, ident := range spec.Names {
				if ident.Name == name && i < len(spec.Values) {
					var text bytes.Buffer
					require.NoError(t, printer.Fprint(&text, token.NewFileSet(), spec.Values[i]))
					expression = text.String()
				}
			}
		}
		return expression == ""
	})
	require.NotEmpty(t, expression, "%s has no constant %s", file, name)
	return evaluate(t, file, expression)
}

var (
	units       = strings.NewReplacer("time.Millisecond", "1000000", "time.Second", "1000000000", "time.Minute", "60000000000")
	identifiers = regexp.MustCompile(`\b[A-Za-z_]\w*`)
)

func evaluate(t *testing.T, file, expression string) int64 {
	t.Helper()
	expression = units.Replace(expression)
	if name := identifiers.FindString(expression); name != "" {
		value := constant.MakeInt64(constantOf(t, file, name)).ExactString()
		return evaluate(t, file, regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(expression, value))
	}
	result, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	require.NoError(t, err, "%s: %s", file, expression)
	value, exact := constant.Int64Val(result.Value)
	require.True(t, exact)
	return value
}

func TestConstantOf(t *testing.T) {
	require.Equal(t, int64(2*5_000_000), constantOf(t, "apis/config/v1alpha1/types.go", "DefaultBudgetAttemptCost"))
	require.Equal(t, int64(1<<18), constantOf(t, "allocator/internal/inventory/dependent.go", "maxDependentDevices"))
	require.Equal(t, int64(200*time.Millisecond), constantOf(t, "plugin/nearmiss.go", "nearMissTimeout"))
}
