// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unicode"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/celset/celset/cmd/kubectl-celset/suite"
)

// example is an example in examples.json of the page.
type example struct {
	Title     string `json:"title"`
	Group     string `json:"group"`
	Documents string `json:"documents"`
	Machine   string `json:"machine"`
	Nodes     int    `json:"nodes"`
	InUse     int    `json:"inUse"`
	// expect is the expected answer of the case.
	expect suite.Expectations
}

// maxExample is the maximum size of the documents of an example, in bytes. A longer text is no example to read.
const maxExample = 64 << 10

// groups maps the files with cases to groups of examples, in the order of the page. A file about a page of the documentation has
// no group here: the group is the title of the page.
var groups = []struct{ path, group string }{
	{"manifests/examples/tests/devices.yaml", "Claims"},
	{"manifests/examples/tests/gangs.yaml", "Gangs"},
	{"manifests/examples/tests/placements.yaml", "Placements"},
	{"docs/hardware/tests/*.yaml", ""},
}

// examplesOf returns an example for each case in the documentation with a positive answer, if the question "try" can express the
// case.
func examplesOf(ctx context.Context, root string) (found []example, err error) {
	known := map[string]bool{}
	for _, g := range groups {
		paths, err := filepath.Glob(filepath.Join(root, g.path))
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("there is no file %s", g.path)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			var test suite.ExpressionTest
			if err := yaml.UnmarshalStrict(content, &test); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			for i := range test.Cases {
				one, err := exampleOf(ctx, root, filepath.Dir(path), &test, &test.Cases[i])
				if err != nil {
					return nil, fmt.Errorf("%s: case %q: %w", path, test.Cases[i].Name, err)
				}
				if one == nil || known[one.Machine+one.Documents] {
					continue
				}
				known[one.Machine+one.Documents] = true
				one.Group = cmp.Or(g.group, one.Group)
				found = append(found, *one)
			}
		}
	}
	return found, nil
}

// exampleOf returns the example for a case, or nil if the case is no example.
func exampleOf(ctx context.Context, root, folder string, test *suite.ExpressionTest, c *suite.Case) (*example, error) {
	if c.Expect.None != "" || len(c.Expect.Errors) > 0 || len(c.Nodes) > 0 {
		return nil, nil
	}
	first, size := utf8.DecodeRuneInString(c.Name)
	one := &example{Title: string(unicode.ToUpper(first)) + c.Name[size:], Nodes: 1, expect: c.Expect}
	setting := test.With(&c.Setting)
	all := &texts{root: root, subject: setting.Subject}
	// The files of the case have the subject. If the case has no files, the file for all cases has it.
	for _, name := range slices.Concat(c.Files, test.Files) {
		if err := all.add(filepath.Join(folder, name)); err != nil {
			return nil, err
		}
	}
	if err := all.addObjects(&setting); err != nil {
		return nil, err
	}
	one.Group = all.title
	if m := setting.Machine; m != nil {
		if slices.ContainsFunc(all.all, func(d text) bool { return d.Kind == "Node" }) {
			return nil, nil // the nodes of a machine in the question "try" have neither other names nor labels
		}
		one.Machine, one.Nodes = m.Name, max(m.Nodes, 1)
	}
	if err := all.addInUse(ctx, one, setting.InUse); err != nil {
		return nil, err
	}
	if one.Documents = all.String(); len(one.Documents) > maxExample {
		return nil, nil
	}
	return one, nil
}
