// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// budget limits the number of lines in some folders, so that growth is noticed in reviews.
type budget struct {
	name string
	// folders are the folders whose files count, with all subfolders except the folders in without.
	folders, without []string
	// counts reports whether a file is counted.
	counts func(name string, content []byte) bool
	// lines is the maximum number of lines: the count at the time when the budget was set. A commit that raises it must give a
	// reason.
	lines int
	// goal is the planned number of lines, or 0 without a plan. The goals of all shipped code add up to 66,000 lines. The test
	// prints by how many lines each goal is exceeded.
	goal int
	// files is the maximum number of files, or 0 for no limit.
	files int
}

// product reports whether a file is Go code that is neither a test nor generated.
func product(name string, content []byte) bool {
	return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !bytes.Contains(content, []byte("// Code generated "))
}

func test(name string, _ []byte) bool { return strings.HasSuffix(name, "_test.go") }

func page(name string, _ []byte) bool { return strings.HasSuffix(name, ".md") }

// script reports whether a file is a script, a style sheet or a page of HTML, and is not generated.
func script(name string, content []byte) bool {
	return slices.Contains([]string{".js", ".css", ".html"}, filepath.Ext(name)) && !bytes.HasPrefix(content, []byte("// Code generated "))
}

var budgets = []budget{
	{name: "apis", folders: []string{"apis"}, counts: product, lines: 3805, goal: 2900},
	{name: "cel", folders: []string{"cel"}, without: []string{"cel/meter", "cel/device", "cel/cluster"}, counts: product, lines: 3293, goal: 2700},
	{name: "cel/meter", folders: []string{"cel/meter"}, counts: product, lines: 2054, goal: 1800},
	{name: "cel/device", folders: []string{"cel/device"}, without: []string{"cel/device/bound", "cel/device/library"}, counts: product, lines: 4031, goal: 2600},
	{name: "cel/device/bound and library", folders: []string{"cel/device/bound", "cel/device/library"}, counts: product, lines: 12164, goal: 8500},
	{name: "cel/cluster", folders: []string{"cel/cluster"}, counts: product, lines: 2123, goal: 1900},
	{name: "allocator", folders: []string{"allocator"}, without: append(explaining, "allocator/conformance", "allocator/internal/fixture"), counts: product, lines: 16404, goal: 11000},
	{name: "allocator/explain and others", folders: explaining, counts: product, lines: 4076, goal: 3000},
	{name: "deviceattributes", folders: []string{"deviceattributes"}, counts: product, lines: 1481},
	{name: "plugin", folders: []string{"plugin"}, counts: product, lines: 13764, goal: 8500},
	{name: "admission", folders: []string{"admission"}, counts: product, lines: 3253, goal: 2500},
	{name: "placement", folders: []string{"placement"}, without: aroundPlacement, counts: product, lines: 5675, goal: 4200},
	{name: "placement/controller and others", folders: aroundPlacement, counts: product, lines: 5911, goal: 5000},
	{name: "cmd", folders: []string{"cmd"}, counts: product, lines: 19441, goal: 8400},
	{name: "internal", folders: []string{"internal"}, without: []string{"internal/testing"}, counts: product, lines: 7272, goal: 3000},
	{name: "hack", folders: []string{"hack"}, counts: product, lines: 772},
	{name: "support of tests", folders: []string{"internal/testing", "test", "allocator/conformance", "allocator/internal/fixture"}, counts: product, lines: 23112},
	{name: "tests", folders: []string{"."}, counts: test, lines: 104103},
	{name: "docs", folders: []string{"docs"}, counts: page, lines: 8715, files: 32},
	{name: "web page", folders: []string{"internal/page/assets", "web"}, without: []string{"web/editor/node_modules"}, counts: script, lines: 1816},
}

// aroundPlacement lists the packages that use package placement, which makes the decisions.
var aroundPlacement = []string{
	"placement/admission", "placement/binding", "placement/controller", "placement/debug", "placement/federation",
	"placement/inventory", "placement/metrics", "placement/multikueue", "placement/report", "placement/turns",
}

var explaining = []string{"allocator/explain", "allocator/extended", "allocator/preemption", "allocator/fragmentation"}

func TestBudgets(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, b := range budgets {
		lines, files := b.count(t, root)
		t.Logf("%-32s %6d of %6d lines, %6d over the goal, %d files", b.name, lines, b.lines, max(0, lines-cmp.Or(b.goal, lines)), files)
		if lines > b.lines || b.files > 0 && files > b.files {
			t.Errorf("%s has %d lines in %d files, %d are allowed: make it shorter, or say in the commit what a reader gets for more", b.name, lines, files, b.lines)
		}
	}
}

func (b *budget) count(t *testing.T, root string) (lines, files int) {
	t.Helper()
	for _, pattern := range b.folders {
		folders, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, folders, "%s: there is no folder %s", b.name, pattern)
		for _, folder := range folders {
			require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				if entry.IsDir() {
					if path != folder && b.leavesOut(root, path, entry.Name()) {
						return filepath.SkipDir
					}
					return nil
				}
				if !entry.Type().IsRegular() || path == folder {
					return nil
				}
				content, err := os.ReadFile(path)
				if err == nil && b.counts(entry.Name(), content) {
					lines, files = lines+bytes.Count(content, []byte("\n")), files+1
				}
				return err
			}))
		}
	}
	return lines, files
}

// leavesOut reports whether a folder does not count: a hidden folder, build output, or a folder in without.
func (b *budget) leavesOut(root, path, name string) bool {
	relative, err := filepath.Rel(root, path)
	if err != nil || strings.HasPrefix(name, ".") || relative == "bin" || relative == "dist" {
		return true
	}
	for _, pattern := range b.without {
		if matched, _ := filepath.Match(pattern, relative); matched {
			return true
		}
	}
	return false
}
