// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"cmp"
	"go/ast"
	"go/constant"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// sections maps a prefix or suffix of a constant's name to sections of docs/labels.md.
var sections = map[string][]string{
	"Annotation": {"Annotations"}, "Label": {"Labels"}, "Condition": {"Condition types"},
	"Reason": {"Reasons of conditions", "Reasons of events"}, "Action": {"Actions of events"},
	"Lease": {"Leases"}, "FieldManager": {"Field managers"}, "Finalizer": {"Finalizers"},
	// The name of the constant does not show which kind it is.
	anyKey: {"Annotations", "Labels", "Finalizers", "Taints"}, "Taint": {"Taints"},
}

const anyKey = "Key"

const module = "github.com/celset/celset"

// aside matches packages that users of a release never run: the development cluster and support for tests.
var aside = regexp.MustCompile(`/test/devcluster|/allocator/conformance|/internal/(controlplane|testing|demo|draw|fleet|hub|realnode|story|topology)(/|$)`)

// unwritten lists texts that look like names in metadata. The names of celset.dev stay in the process. The others are a field's
// value and a Go module.
var unwritten = []string{"celset.dev/out-of-range", "celset.dev/device", "celset.dev/containers", "kueue.x-k8s.io/multikueue", "k8s.io/client-go"}

var (
	// keyed matches the name of a label, an annotation, a finalizer or a taint. Kinds and API versions look different.
	keyed     = regexp.MustCompile(`^([a-z0-9-]+\.)*(celset\.dev|kubernetes\.io|k8s\.io|x-k8s\.io|open-cluster-management\.io)/[a-z-]+$`)
	camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]+$`)
	// inManifest matches a key of a map.
	inManifest = regexp.MustCompile(`(celset\.dev/[a-z-]+)['"]?(?:: | \.topology)`)
)

// found maps names in the code to their kinds.
type found map[string][]string

func (f found) add(kind, name string) {
	if !slices.Contains(f[name], kind) {
		f[name] = append(f[name], kind)
	}
}

// kindOf returns the kind of a constant by its name, or "".
func kindOf(name string) string {
	for kind := range sections {
		if strings.HasPrefix(name, kind) || strings.HasSuffix(name, kind) {
			return kind
		}
	}
	return ""
}

// text returns the value of a string constant, or "" for anything else.
func text(of constant.Value) string {
	if of == nil || of.Kind() != constant.String {
		return ""
	}
	return constant.StringVal(of)
}

// load returns the packages of the programs, with types.
func load(t *testing.T) (loaded []*packages.Package) {
	t.Helper()
	all, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: root},
		"./apis/...", "./cel/...", "./deviceattributes/...", "./allocator/...", "./plugin/...", "./placement/...", "./admission/...", "./cmd/...", "./internal/...")
	require.NoError(t, err)
	driver, err := packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: filepath.Join(root, "test")}, "./topologydriver/...")
	require.NoError(t, err)
	all = append(all, driver...)
	for _, p := range all {
		require.Empty(t, p.Errors)
		if !aside.MatchString(p.PkgPath) {
			loaded = append(loaded, p)
		}
	}
	return loaded
}

// declared returns the constants below apis: the names of celset.
func declared(t *testing.T, loaded []*packages.Package) found {
	t.Helper()
	result := found{}
	for _, p := range loaded {
		if !strings.HasPrefix(p.PkgPath, module+"/apis/") {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			named, ok := p.Types.Scope().Lookup(name).(*types.Const)
			if !ok {
				continue
			}
			value := text(named.Val())
			switch kind := kindOf(name); {
			case p.PkgPath == module+"/apis/wellknown" && kind != "" && strings.HasPrefix(name, kind), kind == "Annotation" && keyed.MatchString(value) && !slices.Contains(unwritten, value):
				result.add(kind, value)
			case p.PkgPath == module+"/apis/wellknown":
				require.True(t, strings.HasPrefix(name, "Guard"), "%s begins with no kind of name: see %s/apis/wellknown/doc.go", name, module)
			}
		}
	}
	return result
}

// reader reads the code of one package.
type reader struct {
	*testing.T
	*packages.Package
	own, others found
}

// others returns the names that the code takes from third-party modules. All other names that the code writes must be declared.
func others(t *testing.T, loaded []*packages.Package, own found) found {
	t.Helper()
	result := found{}
	for _, p := range loaded {
		r := reader{t, p, own, result}
		for _, used := range p.TypesInfo.Uses {
			if named, ok := used.(*types.Const); ok && named.Pkg() != nil && !strings.HasPrefix(named.Pkg().Path(), module+"/apis/") {
				r.constant(named)
			}
		}
		if p.PkgPath == module+"/apis/wellknown" {
			continue
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				r.read(n)
				return true
			})
		}
	}
	return result
}

// constant records a constant outside apis that is a name in an object.
func (r reader) constant(named *types.Const) {
	value := text(named.Val())
	switch {
	case slices.Contains(unwritten, value):
	case keyed.MatchString(value):
		r.others.add(cmp.Or(kindOf(named.Name()), anyKey), value)
	case strings.Contains(named.Name(), "Condition") && isString(named.Type()) && camelCase.MatchString(value) && !slices.Contains([]string{"True", "False", "Unknown"}, value):
		r.others.add("Condition", value)
	}
}

// isString reports whether a constant is a string or a condition type. Constants of other types name other things.
func isString(of types.Type) bool {
	named, ok := of.(*types.Named)
	return !ok || strings.HasSuffix(named.Obj().Name(), "ConditionType")
}

// read records literals that are written or searched for, and requires that they are declared.
func (r reader) read(n ast.Node) {
	switch n := n.(type) {
	case *ast.BasicLit:
		value := text(r.TypesInfo.Types[n].Value)
		if keyed.MatchString(value) && !strings.HasPrefix(r.PkgPath, module+"/apis/") && !slices.Contains(unwritten, value) {
			assert.False(r, strings.HasPrefix(value, "celset.dev/"), "%s: %q stands in the code: make it a constant in apis/wellknown", r.Fset.Position(n.Pos()), value)
			r.others.add(anyKey, value)
		}
	case *ast.CallExpr:
		r.call(n)
	case *ast.CompositeLit:
		of := r.TypesInfo.TypeOf(n).String()
		for _, element := range n.Elts {
			field, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			name, ok := field.Key.(*ast.Ident)
			if !ok {
				continue
			}
			isCondition := strings.HasSuffix(of, "Condition")
			switch {
			case strings.EqualFold(name.Name, "reason"):
				r.demand("Reason", field.Value)
			case name.Name == "Type" && isCondition:
				r.demand("Condition", field.Value)
			case name.Name == "FieldManager":
				r.demand("FieldManager", field.Value)
			}
		}
	}
}

// call reads the arguments of a call by the names of the parameters.
func (r reader) call(call *ast.CallExpr) {
	signature, ok := r.TypesInfo.TypeOf(call.Fun).(*types.Signature)
	if !ok {
		return
	}
	for i := range min(signature.Params().Len(), len(call.Args)) {
		switch signature.Params().At(i).Name() {
		case "reason":
			r.demand("Reason", call.Args[i])
		case "action":
			r.demand("Action", call.Args[i])
		case "conditionType", "condition":
			// Code that reads conditions also reads conditions of others.
			if value := text(r.TypesInfo.Types[call.Args[i]].Value); camelCase.MatchString(value) && r.own[value] == nil {
				r.others.add("Condition", value)
			}
		}
	}
}

// demand fails if a constant is not declared. Sentences are not names, and constants of types other than a condition's are
// reasons of other objects.
func (r reader) demand(kind string, of ast.Expr) {
	is := r.TypesInfo.Types[of]
	value := text(is.Value)
	if value == "" || !isString(is.Type) || !camelCase.MatchString(value) && kind != "FieldManager" {
		return
	}
	if !slices.Contains(r.own[value], kind) && !slices.Contains(r.others[value], kind) {
		assert.Fail(r, "a name stands in the code", "%s: %s %q: use a constant in apis/wellknown", r.Fset.Position(of.Pos()), kind, value)
	}
}

// manifested returns the names that manifests give objects.
func manifested(t *testing.T) found {
	t.Helper()
	result := found{}
	require.NoError(t, filepath.WalkDir(filepath.Join(root, "manifests"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		for _, match := range inManifest.FindAllStringSubmatch(string(content), -1) {
			result[match[1]] = nil
		}
		return err
	}))
	return result
}

// row matches a line of a table of the page.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|(.*)\\|$")

// tabled returns the sections that have a row for a name.
func tabled(t *testing.T) found {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", "labels.md"))
	require.NoError(t, err)
	result := found{}
	for _, section := range strings.Split(string(content), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		for _, match := range row.FindAllStringSubmatch(body, -1) {
			cells := strings.Split(match[2], "|")
			stability := strings.TrimSpace(cells[len(cells)-1])
			require.Contains(t, []string{"alpha", "stable", "theirs"}, stability, "%s in section %s: the last cell is the stability", match[1], title)
			for _, cell := range cells {
				require.NotEmpty(t, strings.TrimSpace(cell), "%s in section %s", match[1], title)
			}
			result.add(title, match[1])
		}
	}
	return result
}

// TestLabels compares the page with the names in the code, in both directions.
func TestLabels(t *testing.T) {
	loaded := load(t)
	own := declared(t, loaded)
	all := others(t, loaded, own)
	for name, kinds := range own {
		for _, kind := range kinds {
			all.add(kind, name)
		}
	}
	page := tabled(t)
	for name, kinds := range all {
		for _, kind := range kinds {
			assert.True(t, slices.ContainsFunc(sections[kind], func(section string) bool { return slices.Contains(page[name], section) }),
				"docs/labels.md has no %s %q: add a row to one of %q", kind, name, sections[kind])
		}
	}
	manifests := manifested(t)
	for name := range manifests {
		assert.Contains(t, page, name, "docs/labels.md lacks what a manifest has")
	}
	for name, titles := range page {
		_, isManifested := manifests[name]
		for _, title := range titles {
			isNamed := slices.ContainsFunc(all[name], func(kind string) bool { return slices.Contains(sections[kind], title) })
			assert.True(t, isNamed || isManifested, "docs/labels.md has %q under %s, and the code has not", name, title)
		}
	}
}
