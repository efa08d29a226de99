// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"math/big"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/costbound"
)

// TestLimits generates the tables of docs/limits.md. testdata/limits.txt contains the rows, with the packages and names of the
// constants to insert.
func TestLimits(t *testing.T) {
	functions := template.FuncMap{
		"plain":  func(folder, name string) int64 { return constantOf(t, folder, name) },
		"number": func(folder, name string) string { return number(constantOf(t, folder, name)) },
		"size":   func(folder, name string) string { return size(constantOf(t, folder, name)) },
		"time":   func(folder, name string) string { return time.Duration(constantOf(t, folder, name)).String() },
	}
	rows, err := template.New("limits.txt").Funcs(functions).ParseFiles(filepath.Join("testdata", "limits.txt"))
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, rows.Execute(&text, nil))
	sections := map[string]string{"sets": setCounts()}
	for section := range strings.SplitSeq(strings.TrimPrefix(text.String(), "## "), "\n## ") {
		name, rows, _ := strings.Cut(strings.TrimSpace(section), "\n")
		sections[name] = "| what | limit | set by |\n|---|---|---|\n| " + strings.ReplaceAll(rows, "\n", " |\n| ") + " |\n"
	}
	checkGenerated(t, filepath.Join("docs", "limits.md"), sections)
}

// TestDefaultsAgree checks that two packages have the same defaults. It also checks a guarantee: one attempt plus the time that
// a namespace can save up must take less than a second.
func TestDefaultsAgree(t *testing.T) {
	require.Equal(t, configv1alpha1.DefaultCacheSize, allocator.DefaultCacheBytes)
	require.Less(t, configv1alpha1.DefaultAttemptTimeout+configv1alpha1.DefaultShareBurst, time.Second)
	require.Equal(t, v1alpha1.MaxExpressionLength, cel.MaxExpressionLength)
}

func number(n int64) string { return thousands(strconv.FormatInt(n, 10)) }

func size(bytes int64) string {
	switch {
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", bytes>>10)
	default:
		return number(bytes) + " bytes"
	}
}

// setCounts returns a table with the number of sets for usual numbers of devices.
func setCounts() string {
	text := "| devices wanted, of free ones | sets |\n|---|---|\n"
	for _, n := range [][2]int64{{4, 8}, {4, 16}, {8, 16}, {4, 64}, {8, 32}, {8, 64}, {16, 64}} {
		text += fmt.Sprintf("| %d of %d | %s |\n", n[0], n[1], grouped(new(big.Int).Binomial(n[1], n[0])))
	}
	return text
}

// TestNestedLoops checks a statement of docs/limits.md: the cost of three nested loops over as many devices as a claim can
// have.
func TestNestedLoops(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	expression, err := environment.Compile(t.Context(), `devices.all(a, devices.all(b, devices.all(c, a.driver == b.driver || b.driver == c.driver)))`)
	require.NoError(t, err)
	var devices []*device.Device
	for i := range resourceapi.AllocationResultsMaxSize {
		devices = append(devices, published(fmt.Sprintf("d%d", i), nil, ""))
	}
	budget := cel.NewBudget(1 << 40)
	satisfied, err := expression.Satisfied(t.Context(), devices, budget)
	require.NoError(t, err)
	require.True(t, satisfied)
	t.Logf("%d CEL cost units", budget.Spent())
	require.InDelta(t, 300_000, budget.Spent(), 100_000)
}

// constantOf returns the value of a constant in a package. It evaluates expressions of numbers, other constants and units of
// package time.
func constantOf(t *testing.T, folder, name string) int64 {
	t.Helper()
	if folder == "selector" { // the values in this package are fields of a struct
		return map[string]int64{"Cost": int64(costbound.SelectorLimits.Cost), "Bytes": int64(costbound.SelectorLimits.Bytes)}[name]
	}
	for _, parsed := range filesOf(t, folder) {
		var value ast.Expr
		ast.Inspect(parsed, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				if i := slices.IndexFunc(spec.Names, func(of *ast.Ident) bool { return of.Name == name }); i >= 0 && i < len(spec.Values) {
					value = spec.Values[i]
				}
			}
			return value == nil
		})
		if value != nil {
			var text bytes.Buffer
			require.NoError(t, printer.Fprint(&text, token.NewFileSet(), value))
			return evaluate(t, folder, text.String())
		}
	}
	t.Fatalf("%s has no constant %s", folder, name)
	return 0
}

// parsedFiles caches the parsed files of packages. The key is a folder in this module, or the import path of another package.
var parsedFiles = map[string][]*ast.File{}

func filesOf(t *testing.T, folder string) []*ast.File {
	t.Helper()
	if parsedFiles[folder] == nil {
		dir := filepath.Join(root, folder)
		if _, err := os.Stat(dir); err != nil {
			of, err := build.Import(folder, root, build.FindOnly)
			require.NoError(t, err)
			dir = of.Dir
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			parsedFiles[folder] = append(parsedFiles[folder], parsed)
		}
	}
	return parsedFiles[folder]
}

var (
	units       = strings.NewReplacer("time.Millisecond", "1000000", "time.Second", "1000000000", "time.Minute", "60000000000")
	identifiers = regexp.MustCompile(`\b[A-Za-z_][\w.]*`)
)

// importOf finds the package that the package in folder imports under the name. It returns its folder in this module, or its
// import path.
func importOf(t *testing.T, folder, name string) string {
	t.Helper()
	for _, file := range filesOf(t, folder) {
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			if spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(imported) == name {
				return strings.TrimPrefix(imported, "github.com/celset/celset/")
			}
		}
	}
	t.Fatalf("%s imports no package as %s", folder, name)
	return ""
}

func evaluate(t *testing.T, folder, expression string) int64 {
	t.Helper()
	expression = identifiers.ReplaceAllStringFunc(units.Replace(expression), func(name string) string {
		of := folder
		if imported, constant, is := strings.Cut(name, "."); is {
			of, name = importOf(t, folder, imported), constant
		}
		return strconv.FormatInt(constantOf(t, of, name), 10)
	})
	result, err := types.Eval(token.NewFileSet(), nil, token.NoPos, expression)
	require.NoError(t, err, "%s: %s", folder, expression)
	value, exact := constant.Int64Val(constant.ToInt(result.Value))
	require.True(t, exact)
	return value
}

var update = flag.Bool("update", false, "write what is generated into the pages")

// On pages that people write, generated text is between these two lines.
const (
	generatedBegin = "<!-- generated: %s -->\n"
	generatedEnd   = "<!-- end -->\n"
)

var generatedSection = regexp.MustCompile(`(?s)<!-- generated: (.*?) -->\n(.*?)<!-- end -->\n`)

// checkGenerated compares the generated sections of a page with their expected contents, by name. With the flag -update it
// writes the expected contents into the page.
func checkGenerated(t *testing.T, page string, sections map[string]string) {
	t.Helper()
	path := filepath.Join("..", "..", page)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	result := replaceGenerated(string(content), sections)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(result), 0o644))
	}
	for name := range sections {
		require.Contains(t, result, fmt.Sprintf(generatedBegin, name), "%s has no such section", page)
	}
	if !*update {
		require.Equal(t, result, string(content), "run make generate-docs")
	}
}

func replaceGenerated(text string, sections map[string]string) string {
	return generatedSection.ReplaceAllStringFunc(text, func(section string) string {
		name := generatedSection.FindStringSubmatch(section)[1]
		if content, ok := sections[name]; ok {
			return fmt.Sprintf(generatedBegin, name) + "\n" + content + "\n" + generatedEnd
		}
		return section
	})
}
