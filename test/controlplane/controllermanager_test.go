// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestControllers checks that each controller of kube-controller-manager either runs or has a reason in notRun.
func TestControllers(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", kubernetesModule).Output()
	require.NoError(t, err)
	file := filepath.Join(strings.TrimSpace(string(dir)), "cmd/kube-controller-manager/names/controller_names.go")
	source, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	var known []string
	ast.Inspect(source, func(node ast.Node) bool {
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			name, err := strconv.Unquote(literal.Value)
			require.NoError(t, err)
			known = append(known, name)
		}
		return true
	})
	require.Greater(t, len(known), 40)
	ours := DefaultControllers()
	for _, names := range notRun {
		ours = append(ours, names...)
	}
	slices.Sort(known)
	slices.Sort(ours)
	require.Equal(t, known, ours, "a controller is new or gone: say whether it runs")
}
