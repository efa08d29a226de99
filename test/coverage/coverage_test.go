// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/cover"
)

var (
	profile = flag.String("profile", "", "what \"go test -coverprofile\" wrote; without it nothing is compared")
	update  = flag.Bool("update", false, "record the profile in place of comparing")
)

const (
	record = "coverage.txt"
	header = "# The percentage of statements that tests reach. Written by \"make coverage\"; see doc.go.\n"
	module = "github.com/celset/celset/"

	// The test accepts a smaller drop, because chance can cause it. tolerance is in percentage points, toleratedStatements in
	// statements.
	tolerance           = 1.0
	toleratedStatements = 2
)

// reached is the number of a package's statements that tests run. statements is the number of all its statements.
type reach struct{ reached, statements int }

func (r reach) percent() float64 {
	if r.statements == 0 {
		return 100
	}
	return 100 * float64(r.reached) / float64(r.statements)
}

func TestNoPackageIsTestedLess(t *testing.T) {
	if *profile == "" {
		t.Skip("compares what make test-coverage found out")
	}
	profiles, err := cover.ParseProfiles(*profile)
	require.NoError(t, err)
	now := byPackage(profiles)
	require.NotEmpty(t, now)
	if *update {
		require.NoError(t, os.WriteFile(record, []byte(written(now)), 0o644))
		return
	}
	content, err := os.ReadFile(record)
	require.NoError(t, err)
	before, err := read(string(content))
	require.NoError(t, err)
	complaints := compare(before, now)
	require.Empty(t, complaints, "%s", strings.Join(complaints, "\n"))
}

// byPackage adds up the statements in the profiles of all files of each package.
func byPackage(profiles []*cover.Profile) map[string]reach {
	result := map[string]reach{}
	for _, file := range profiles {
		name := strings.TrimPrefix(path.Dir(file.FileName), module)
		sum := result[name]
		for _, block := range file.Blocks {
			sum.statements += block.NumStmt
			if block.Count > 0 {
				sum.reached += block.NumStmt
			}
		}
		result[name] = sum
	}
	return result
}

func written(all map[string]reach) string {
	text := header
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text += fmt.Sprintf("%s %.1f\n", name, all[name].percent())
	}
	return text
}

func read(content string) (map[string]float64, error) {
	result := map[string]float64{}
	for line := range strings.Lines(content) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		var percent float64
		if _, err := fmt.Sscanf(line, "%s %f\n", &name, &percent); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", record, line, err)
		}
		result[name] = percent
	}
	return result, nil
}

// compare returns a message for each package whose coverage has fallen, or that is recorded or measured but not both.
func compare(before map[string]float64, now map[string]reach) []string {
	var complaints []string
	for _, name := range slices.Sorted(maps.Keys(now)) {
		percent, known := before[name]
		if !known {
			complaints = append(complaints, fmt.Sprintf("%s is not recorded: run \"make coverage\"", name))
			continue
		}
		current := now[name]
		allowed := max(tolerance, 100*toleratedStatements/float64(max(current.statements, 1)))
		if fall := percent - current.percent(); fall > allowed {
			complaints = append(complaints, fmt.Sprintf("tests reach %.1f %% of the %d statements of %s, it was %.1f %%: test what is new; where that is no use, run \"make coverage\" and say why",
				current.percent(), current.statements, name, percent))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, exists := now[name]; !exists {
			complaints = append(complaints, fmt.Sprintf("%s is recorded and was not tested: if it is gone, run \"make coverage\"", name))
		}
	}
	return complaints
}

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		before map[string]float64
		now    map[string]reach
		want   []string
	}{
		"the same":              {map[string]float64{"a": 90}, map[string]reach{"a": {900, 1000}}, nil},
		"more":                  {map[string]float64{"a": 90}, map[string]reach{"a": {950, 1000}}, nil},
		"by chance":             {map[string]float64{"a": 90}, map[string]reach{"a": {891, 1000}}, nil},
		"by chance, a few":      {map[string]float64{"a": 100}, map[string]reach{"a": {8, 10}}, nil},
		"no statements":         {map[string]float64{"a": 100}, map[string]reach{"a": {}}, nil},
		"less":                  {map[string]float64{"a": 90}, map[string]reach{"a": {889, 1000}}, []string{"reach 88.9 % of the 1000 statements of a, it was 90.0 %"}},
		"less of a few":         {map[string]float64{"a": 100}, map[string]reach{"a": {7, 10}}, []string{"reach 70.0 % of the 10 statements of a"}},
		"one of several":        {map[string]float64{"a": 90, "b": 50}, map[string]reach{"a": {900, 1000}, "b": {400, 1000}}, []string{"statements of b"}},
		"new":                   {map[string]float64{}, map[string]reach{"a": {1, 1}}, []string{"a is not recorded"}},
		"gone":                  {map[string]float64{"a": 1}, map[string]reach{}, []string{"a is recorded and was not tested"}},
		"never tested, and new": {map[string]float64{"a": 0}, map[string]reach{"a": {0, 10}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := compare(test.before, test.now)
			require.Len(t, got, len(test.want), "%v", got)
			for i, want := range test.want {
				require.Contains(t, got[i], want)
			}
		})
	}
}

func TestRecordIsReadAsItIsWritten(t *testing.T) {
	profiles, err := cover.ParseProfilesFromReader(strings.NewReader(`mode: atomic
github.com/celset/celset/a/b/x.go:1.1,2.2 3 7
github.com/celset/celset/a/b/y.go:1.1,2.2 1 0
github.com/celset/celset/c/z.go:1.1,2.2 2 0
`))
	require.NoError(t, err)
	all := byPackage(profiles)
	require.Equal(t, map[string]reach{"a/b": {3, 4}, "c": {0, 2}}, all)
	text := written(all)
	require.Equal(t, header+"a/b 75.0\nc 0.0\n", text)
	got, err := read(text)
	require.NoError(t, err)
	require.Equal(t, map[string]float64{"a/b": 75, "c": 0}, got)
	for _, wrong := range []string{"a\n", "a b\n", "\n"} {
		_, err := read(wrong)
		require.Error(t, err, "%q", wrong)
	}
}
