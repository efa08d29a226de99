// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// maxBackward maps a folder to the maximum percentage of arrows between its files that may run backward.
var maxBackward = map[string]int{
	"allocator":        7,
	"cel/device/bound": 3,
	"placement":        7,
	"plugin":           15,
}

// arrow is a pair of files: the file from uses a name, a field or a method that the file to declares.
type arrow struct{ from, to string }

// TestArrowsPointOneWay orders the files of a folder and its subfolders such that users come before the files that they use, and
// bounds the arrows that run backward in this order. -v prints the numbers and the backward arrows.
//
//  1. Type-check the packages of the folder. Collect the arrows between their files.
//  2. Sort the packages by their imports, so arrows between packages never run backward.
//  3. Within a package, insert each file at its best place, until no file can move to a better one.
func TestArrowsPointOneWay(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	for _, folder := range slices.Sorted(maps.Keys(maxBackward)) {
		t.Run(folder, func(t *testing.T) {
			arrows := arrowsIn(t, root, folder)
			require.NotEmpty(t, arrows)
			var backward []arrow
			for _, within := range byPackage(arrows) {
				backward = append(backward, backwardIn(within)...)
			}
			percent := 100 * len(backward) / len(arrows)
			t.Logf("%s: %d arrows between files, %d of them backward, %d %%", folder, len(arrows), len(backward), percent)
			for _, a := range backward {
				t.Logf("%s uses %s", a.from, a.to)
			}
			assert.LessOrEqual(t, percent, maxBackward[folder], "move what both files use to a file below both")
		})
	}
}

// arrowsIn returns the arrows between files of the folder. Files are paths relative to the folder.
func arrowsIn(t *testing.T, root, folder string) map[arrow]bool {
	t.Helper()
	fset := token.NewFileSet()
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
		Dir:  root, Fset: fset,
	}, "./"+folder+"/...")
	require.NoError(t, err)
	inFolder := func(pos token.Pos) (string, bool) {
		path, err := filepath.Rel(filepath.Join(root, folder), fset.Position(pos).Filename)
		return path, err == nil && !strings.HasPrefix(path, "..")
	}
	arrows := map[arrow]bool{}
	for _, p := range loaded {
		require.Empty(t, p.Errors)
		for _, file := range p.Syntax {
			from, ok := inFolder(file.Package)
			if !ok || ast.IsGenerated(file) {
				continue
			}
			for name := range ast.Preorder(file) {
				id, isName := name.(*ast.Ident)
				if !isName {
					continue
				}
				used := p.TypesInfo.Uses[id]
				if used == nil || used.Pkg() == nil || isLocal(used) {
					continue
				}
				if to, ok := inFolder(used.Pos()); ok && to != from {
					arrows[arrow{from, to}] = true
				}
			}
		}
	}
	return arrows
}

// isLocal reports whether an object is declared inside a function, or is the name of an imported package. Such objects are no
// arrows.
func isLocal(object types.Object) bool {
	switch object := object.(type) {
	case *types.PkgName:
		return true
	case *types.Var:
		if object.IsField() {
			return false
		}
	case *types.Func:
		return false
	}
	return object.Parent() != object.Pkg().Scope()
}

// byPackage groups the arrows whose files are in the same package. The order is the same in each run.
func byPackage(arrows map[arrow]bool) (groups [][]arrow) {
	within := map[string][]arrow{}
	for a := range arrows {
		if folder := filepath.Dir(a.from); folder == filepath.Dir(a.to) {
			within[folder] = append(within[folder], a)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(within)) {
		slices.SortFunc(within[folder], func(a, b arrow) int { return strings.Compare(a.from+" "+a.to, b.from+" "+b.to) })
		groups = append(groups, within[folder])
	}
	return groups
}

// backwardIn orders the files of a package so that few arrows run backward, and returns these. An arrow runs backward if the
// used file comes before its user.
func backwardIn(arrows []arrow) (backward []arrow) {
	uses := map[arrow]int{}
	uniq := map[string]bool{}
	for _, a := range arrows {
		uses[a] = 1
		uniq[a.from], uniq[a.to] = true, true
	}
	order := slices.Sorted(maps.Keys(uniq))
	for moved := true; moved; {
		moved = false
		for _, file := range slices.Clone(order) {
			at := slices.Index(order, file)
			rest := slices.Delete(slices.Clone(order), at, at+1)
			// cost is the number of the file's arrows that run backward if the file is inserted at place i.
			cost := 0
			for _, other := range rest {
				cost += uses[arrow{other, file}]
			}
			best, bestCost, own := 0, cost, cost
			for i, other := range rest {
				cost += uses[arrow{file, other}] - uses[arrow{other, file}]
				if cost < bestCost {
					best, bestCost = i+1, cost
				}
				if i+1 == at {
					own = cost
				}
			}
			if bestCost < own {
				order, moved = slices.Insert(rest, best, file), true
			}
		}
	}
	place := map[string]int{}
	for i, file := range order {
		place[file] = i
	}
	for _, a := range arrows {
		if place[a.from] > place[a.to] {
			backward = append(backward, a)
		}
	}
	return backward
}
