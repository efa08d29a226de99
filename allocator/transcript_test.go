// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel"
)

var rewrite = flag.Bool("rewrite", false, "write what is expected in testdata/transcripts anew")

// TestTranscripts runs the cases in testdata/transcripts. A line with "==" begins a group of cases, and a line with "--" begins
// a case. Statements of a group apply to each of its cases. Package fixture defines the statements. The expected results follow
// in lines that begin with ">". Lines that begin with "#" are comments. The flag -rewrite updates the results.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "transcripts", "*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := transcript(t, string(text))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}
		})
	}
}

// transcript runs the cases of a file. It returns the text of the file with the actual results.
func transcript(t *testing.T, text string) string {
	t.Helper()
	var result, group, given, want []string
	title, name := "", ""
	flush := func() {
		if name == "" {
			return
		}
		t.Run(name, func(t *testing.T) {
			got := answered(t, slices.Concat(group, given))
			if !*rewrite {
				require.Equal(t, strings.Join(want, "\n"), strings.Join(got, "\n"), "-rewrite writes it anew")
			}
			result = append(result, got...)
		})
		name, given, want = "", nil, nil
	}
	blank := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, ">"):
			want = append(want, line)
			continue
		case line == "":
			blank++
			continue
		case want != nil || strings.HasPrefix(line, "==") || strings.HasPrefix(line, "--"):
			flush()
		}
		result = append(result, append(make([]string, blank), line)...)
		blank = 0
		of, isCase := strings.CutPrefix(line, "-- ")
		switch {
		case isCase:
			name = title + ", " + of
		case strings.HasPrefix(line, "=="):
			title, group = strings.TrimPrefix(line, "== "), nil
		case strings.HasPrefix(line, "#"):
		case name == "":
			group = append(group, line)
		default:
			given = append(given, line)
		}
	}
	flush()
	return strings.Join(result, "\n") + "\n"
}

// answered runs one case and returns its result lines. It checks that the exhaustive search and searches with a cache give the
// same result, that an invalid claim is refused without a search, and that the inputs do not change. Package search runs the
// same cases and checks the state after each search.
func answered(t *testing.T, lines []string) []string {
	t.Helper()
	d := fixture.DraftOf(t, lines)
	s := scenario{d.Scenario}
	given := s.copyOf()
	reasons := append(slices.Clone(s.Options), WithReasons())
	a := s.with(WithReasons()).allocator(t)
	results, details, err := a.AllocateWithDetails(t.Context(), s.OnNode(), s.APIClaims())
	got, failure := answerOf(results, err), err
	require.Empty(t, got.Err == "" && results == nil)

	plain, err := s.allocate(t)
	require.Equal(t, devicesOf(got.Results), devicesOf(plain))
	if err != nil || got.Err != "" && !got.onNode {
		require.EqualError(t, err, got.Err)
	}
	if checked := a.CheckConstraints(s.APIClaims()); checked != nil {
		require.Equal(t, got.Err, checked.Error())
	}
	if !d.Limited {
		want, _ := s.answer(t, append(reasons, WithExhaustiveSearch())...)
		require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(response{})), "the exhaustive search")
	}
	cached := append(reasons, WithCache(NewCache()))
	for range 2 {
		again, _ := s.answer(t, cached...)
		require.Empty(t, cmp.Diff(got, again, cmp.AllowUnexported(response{})), "with a cache")
	}
	result := shown(t, d, got, details, failure)
	require.True(t, reflect.DeepEqual(given.Slices, s.Slices) && reflect.DeepEqual(given.Claims, s.Claims))
	if d.Also != "" {
		once := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, "also ") })
		require.Equal(t, result, answered(t, append(once, "with "+d.Also)), "with %s", d.Also)
	}
	return result
}

func shown(t *testing.T, d *fixture.Draft, got response, details Details, err error) []string {
	t.Helper()
	var text string
	switch {
	case got.onNode:
		text = "no: " + got.Err
	case got.Err != "":
		text = "error: " + got.Err
	default:
		text = byRequest(got.Results)
	}
	text += fmt.Sprintf("\nsteps %d", details.Steps)
	if details.Evaluations > 0 {
		text += fmt.Sprintf(", evaluations %d", details.Evaluations)
	}
	if details.Cuts > 0 {
		text += fmt.Sprintf(", cuts %d", details.Cuts)
	}
	if failure, is := errors.AsType[*cel.Error](err); is {
		text += fmt.Sprintf(", reason %s", failure.Reason)
	}
	for _, what := range d.Shows {
		var part any
		switch what {
		case "results":
			part = got.Results
		case "pools":
			part = describePools(t, scenario{d.Scenario})
		case "preferences":
			part = preferences(details)
		case "stats":
			part = fmt.Sprintf("%+v", details.Stats)
		case "shapes":
			part = ShapesOf(d.Claims[0].ResourceClaim, d.Lister())
		default:
			of := strings.Split(what, "/")
			require.Len(t, of, 3, what)
			count := scenario{d.Scenario}.count(t, Shape{Class: of[0], Constraint: of[1], Count: int(number(t, of[2]))})
			part = fmt.Sprintf("%s: %d sets, all of them: %t", what, count.Sets, count.IsMost)
		}
		written, err := yaml.Marshal(part)
		require.NoError(t, err)
		text += "\n" + strings.TrimSuffix(string(written), "\n")
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimSuffix("> "+line, " "))
	}
	return lines
}

// byRequest returns a text that lists the allocated devices by request, in order.
func byRequest(results []resourceapi.AllocationResult) string {
	var parts []string
	for _, result := range results {
		last := ""
		for _, d := range result.Devices.Results {
			if d.Request != last {
				parts, last = append(parts, d.Request+"="+d.Device), d.Request
			} else {
				parts[len(parts)-1] += "," + d.Device
			}
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

// preferences returns lines with the outcome and the values of the preferences.
func preferences(details Details) []string {
	result := []string{string(details.Outcome)}
	for _, p := range details.Preferences {
		result = append(result, fmt.Sprintf("claim %d, preference %d, %s: %s", p.Claim, p.Preference, p.Name, p))
	}
	return result
}

// describePools returns lines with the devices of each pool of the node, and why a pool can't be used.
func describePools(t *testing.T, s scenario) []string {
	t.Helper()
	features := allOn
	if s.Features != nil {
		features = *s.Features
	}
	has, err := inventory.New(features, s.OnNode(), s.APISlices(), s.APISlices())
	require.NoError(t, err)
	result := []string{}
	for _, p := range has.Pools {
		line := p.String()
		switch {
		case p.Incomplete:
			line += " incomplete"
		case p.Invalid != "":
			line += " invalid (" + p.Invalid + ")"
		}
		for _, c := range has.Candidates {
			if c.Pool == p {
				line += " " + c.ID.Device.String()
			}
		}
		result = append(result, line)
	}
	return result
}
