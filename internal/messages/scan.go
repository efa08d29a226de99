// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Packages are those that make what a user of a constraint, or an operator of the
// scheduler, gets to read, by their folders.
var Packages = []string{
	"apis/celset/v1alpha1", "apis/config/v1alpha1", "apis/internal/strictjson",
	"cel", "cel/device", "cel/device/costbound", "cel/meter", "allocator", "allocator/internal/availability", "allocator/internal/capacity", "allocator/internal/constraint",
	"allocator/internal/inventory", "allocator/internal/requests", "allocator/internal/selection",
	"allocator/explain", "allocator/nodeset", "allocator/podclaims",
	"plugin", "plugin/guard", "plugin/pendingwrites", "plugin/watchdog", "admission", "admission/webhook", "admission/guard", "admission/guard/server", "cmd/internal/skew",
}

// Gap stands in a text for what is put together with + and is no literal.
const Gap = "…"

// Scan finds the texts in the code below root, the folder of the module, and for each
// the files that it stands in. A text is a string literal, or several joined by +, that
// is an argument of fmt.Errorf or errors.New or has three words or more: sentences are
// for people.
func Scan(root string) (map[string][]string, error) {
	found := map[string][]string{}
	for _, folder := range Packages {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			return nil, fmt.Errorf("scan for messages: %w", err)
		}
		for _, entry := range entries {
			name := entry.Name()
			if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				continue
			}
			if err := scanFile(root, filepath.Join(folder, name), found); err != nil {
				return nil, fmt.Errorf("scan for messages: %w", err)
			}
		}
	}
	return found, nil
}

func scanFile(root, name string, found map[string][]string) error {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	add := func(text string) { found[text] = append(found[text], filepath.ToSlash(name)) }
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return n.Tag == nil
		case *ast.CallExpr:
			if text, ok := errorText(n); ok {
				add(text)
			}
		case ast.Expr:
			text, ok := literal(n)
			if ok && strings.Count(text, " ") >= 2 {
				add(text)
			}
			return !ok
		}
		return true
	})
	return nil
}

// errorText is the text of an error of two words or less; longer ones are found anyway.
func errorText(call *ast.CallExpr) (string, bool) {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) == 0 {
		return "", false
	}
	in, ok := function.X.(*ast.Ident)
	if !ok || in.Name+"."+function.Sel.Name != "fmt.Errorf" && in.Name+"."+function.Sel.Name != "errors.New" {
		return "", false
	}
	text, ok := literal(call.Args[0])
	return text, ok && strings.Count(text, " ") < 2
}

// literal is a string literal, or a sum with at least one.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, leftOK := literal(e.X)
		right, rightOK := literal(e.Y)
		if !leftOK {
			left = Gap
		}
		if !rightOK {
			right = Gap
		}
		return left + right, leftOK || rightOK
	default:
		return "", false
	}
}
