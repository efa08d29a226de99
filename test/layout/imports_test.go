// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const module = "github.com/celset/celset"

// rule is an entry of testdata/imports.yaml. Comments there describe the fields.
type rule struct {
	Folder string `json:"folder"`
	Alone  bool   `json:"alone"`
	// Without lists subfolders of Folder to which the rule does not apply.
	Without []string `json:"without"`
	// Ours and Direct list the allowed imports. Nil means that all are allowed.
	Ours   *[]string `json:"ours"`
	Direct *[]string `json:"direct"`
	Never  []string  `json:"never"`
}

var server = []string{"k8s.io/kubernetes", "k8s.io/client-go", "sigs.k8s.io/controller-runtime"}

func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	content, err := os.ReadFile("testdata/imports.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, &rules))
	require.NotEmpty(t, rules)
	for i := range rules {
		var never []string
		for _, pattern := range rules[i].Never {
			switch {
			case pattern == "server":
				never = append(never, server...)
			case strings.HasPrefix(pattern, "/"):
				never = append(never, strings.TrimSuffix(module+pattern, "/"))
			default:
				never = append(never, pattern)
			}
		}
		rules[i].Never = never
	}
	return rules
}

// goPackage has the fields that the tests read of "go list -json".
type goPackage struct {
	ImportPath string
	Name       string
	Standard   bool
	Imports    []string
	Deps       []string
}

// list runs "go list" at its first call, and returns the packages by import path.
var list = sync.OnceValues(func() (map[string]goPackage, error) {
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Standard,Imports,Deps", module+"/...")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, &stderr)
	}
	packages := map[string]goPackage{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages[p.ImportPath] = p
	}
})

func TestImports(t *testing.T) {
	packages, err := list()
	require.NoError(t, err)
	rules := readRules(t)
	for _, r := range rules {
		t.Run(r.Folder, func(t *testing.T) {
			for _, folder := range r.Without {
				require.True(t, slices.ContainsFunc(rules, func(other rule) bool { return other.Folder == folder && !other.Alone }), "%s has no rule", folder)
			}
			checked := 0
			for path, p := range packages {
				if r.covers(path) {
					r.check(t, p, packages)
					checked++
				}
			}
			require.NotZero(t, checked, "the folder has no packages: has it moved?")
		})
	}
}

// covers reports whether the rule applies to a package.
func (r rule) covers(path string) bool {
	folder, ours := strings.CutPrefix(path, module+"/")
	return ours && under(folder, r.Folder) && (!r.Alone || folder == r.Folder) && !underAny(folder, r.Without)
}

func (r rule) check(t *testing.T, p goPackage, packages map[string]goPackage) {
	for _, imported := range p.Imports {
		switch {
		case packages[imported].Standard || imported == "C":
		case under(imported, module):
			if r.Ours != nil && !under(imported, module+"/"+r.Folder) && !underAny(strings.TrimPrefix(imported, module+"/"), *r.Ours) {
				t.Errorf("%s must not import %s", p.ImportPath, imported)
			}
		case r.Direct != nil && !underAny(imported, *r.Direct):
			t.Errorf("%s must not import %s", p.ImportPath, imported)
		}
	}
	for _, dependency := range p.Deps {
		if underAny(dependency, r.Never) {
			t.Errorf("%s must not depend on %s", p.ImportPath, dependency)
		}
	}
}

func underAny(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return under(path, pattern) })
}

func under(path, pattern string) bool {
	return path == pattern || strings.HasPrefix(path, pattern+"/")
}
