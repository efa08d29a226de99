// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/internal/testing/cases"
)

var options = Options{
	Timeout:  time.Minute,
	Features: func(map[string]bool) (structured.Features, error) { return structured.Features{}, nil },
}

const header = "apiVersion: kubectl.celset.dev/v1alpha1\nkind: ExpressionTest\n"

func written(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "test.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// TestLimits checks that files, names and numbers beyond the limits are mistakes.
func TestLimits(t *testing.T) {
	many := func(n int, text string) string { return "[" + strings.Repeat(text+",", n) + text + "]" }
	for want, content := range map[string]string{
		"the file has more than 1024 KiB, the limit":               header + strings.Repeat("# comment\n", maxFile/10),
		"there are 1001, the limit is 1000":                        header + "cases: " + many(maxCases, "{name: a}"),
		"exceeded max depth":                                       header + "cases: " + strings.Repeat("[", 20_000),
		"must be a line of at most 200 bytes":                      header + "cases: [{name: " + strings.Repeat("a", 201) + "}]",
		"files: there are 101, the limit is 100":                   header + "files: " + many(maxFiles, "a") + "\ncases: [{name: a}]",
		"objects: there are 1001, the limit is 1000":               header + "objects: " + many(maxObjects, "{}") + "\ncases: [{name: a}]",
		"inUse: there are 1001, the limit is 1000":                 header + "inUse: " + many(maxInUse, "{count: 1}") + "\ncases: [{name: a}]",
		"machine.nodes: 1001: must be from 1 to 1000":              header + "machine: {name: hgx-h100, nodes: 1001}\ncases: [{name: a}]",
		"1 more mistakes":                                          header + "cases: " + many(21, "{name: a}"),
		"cases: there are none: add a case with a name and the fi": header,
	} {
		report, err := Run(t.Context(), []string{written(t, content)}, options)
		require.NoError(t, err)
		require.True(t, report.IsUnanswered())
		var text strings.Builder
		require.NoError(t, report.Print(&text))
		require.Contains(t, text.String(), want)
	}
}

// TestHugeInput checks limits that apply to the objects of a case.
func TestHugeInput(t *testing.T) {
	path := written(t, header+`machine: {name: hgx-h100, nodes: 1000}
claim: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}]}}
nodes: [node-1]
cases:
- name: in use
  inUse: [`+strings.Repeat("{count: 20}, ", 20)+`]
  expect: {devices: [gpu-3]}
- name: pods
  objects:
  - apiVersion: batch/v1
    kind: Job
    metadata: {name: a}
    spec: {parallelism: 2000000000, template: {spec: {containers: []}}}
  expect: {devices: [gpu-3]}
`)
	report, err := Run(t.Context(), []string{path}, options)
	require.NoError(t, err)
	require.Contains(t, report.Files[0].Cases[0].Error, "inUse: more than 100000 devices are in use, the limit")
	require.Contains(t, report.Files[0].Cases[1].Error, "objects[0]: Job a: spec.parallelism: the Jobs have more than 1000 pods, the limit")
}

// TestJUnit checks that the XML of any report is valid, and that its counts agree with its elements.
func TestJUnit(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"]]>", "<a/>", "\x00", "\xff", "\u202e", "&amp;"}))
		report := &Report{}
		for range rapid.IntRange(0, 2).Draw(t, "files") {
			file := File{Name: text.Draw(t, "name")}
			for range rapid.IntRange(0, 2).Draw(t, "mistakes") {
				file.Mistakes = append(file.Mistakes, Mistake{Line: 1, Field: text.Draw(t, "field"), Message: text.Draw(t, "message")})
			}
			for range rapid.IntRange(0, 3).Draw(t, "cases") {
				c := Result{Name: text.Draw(t, "case"), Outcome: rapid.SampledFrom([]Outcome{Passed, Failed, Error, Updated}).Draw(t, "outcome")}
				switch c.Outcome {
				case Failed:
					c.Failures = []Failure{{Field: text.Draw(t, "field"), Want: text.Draw(t, "want"), Got: text.Draw(t, "got")}}
				case Error:
					c.Error = text.Draw(t, "error")
				}
				file.add(c.Outcome)
				report.add(c.Outcome)
				file.Cases = append(file.Cases, c)
			}
			report.Files = append(report.Files, file)
		}
		var b bytes.Buffer
		require.NoError(t, report.JUnit(&b))
		require.NotRegexp(t, "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", b.String())
		var read junitSuites
		require.NoError(t, xml.Unmarshal(b.Bytes(), &read), b.String())
		tests, failures, errors := 0, 0, 0
		for _, suite := range read.Suites {
			require.Len(t, suite.Cases, suite.Tests)
			for _, c := range suite.Cases {
				tests++
				if c.Failure != nil {
					failures++
				}
				if c.Error != nil {
					errors++
				}
			}
		}
		require.Equal(t, []int{read.Tests, read.Failures, read.Errors}, []int{tests, failures, errors})
	})
}

// TestUpdateRandom writes random expectations into files in several styles. The new text must decode to these expectations, or the
// file must stay as it is, with an error.
func TestUpdateRandom(t *testing.T) {
	name := rapid.OneOf(rapid.StringMatching(`[a-z][a-z0-9-]{0,8}`), rapid.SampledFrom([]string{"no", "1", "a: b", "a # b", "'", "{}", "[", "ü", " a", "%", "\"", "-"}))
	written := 0
	path := filepath.Join(t.TempDir(), "test.yaml")
	cases.Check(t, func(t *rapid.T) {
		content := header + "\n# before\ncases:\n"
		count := rapid.IntRange(1, 4).Draw(t, "count")
		for i := range count {
			content += rapid.SampledFrom([]string{
				"- name: c%d\n", "- name: c%d # x\n\n  # y\n  expect: {devices: [a, 'b}'], none: ''} # z\n  namespace: ns\n",
				"- {name: c%d, expect: {none: \"a } b\", steps: {atMost: 3}}}\n", "- name: c%d\n  expect:\n    # one\n    devices:\n    - a # two\n    - b\n    # three\n\n",
				"- name: c%d\n  expect:\n    satisfies: |\n      # no comment\n      true\n\n", "- name: c%d\n  expect:\n    requests:\n      ü: [a]\n  subject: pod/a\n",
				"-   name: c%d\n    expect:\n          none: >\n             a\n             b\n", "- name: c%d\n  expect:\n",
			}).Draw(t, "case")
			content = strings.Replace(content, "%d", fmt.Sprint(i), 1)
			content += rapid.SampledFrom([]string{"", "\n", "# between\n", "\n\n# between\n"}).Draw(t, "between")
		}
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		s, mistakes := read(path)
		require.Empty(t, mistakes, content)
		changed := map[int]*Expectations{}
		for i := range count {
			if rapid.Bool().Draw(t, "changes") {
				changed[i] = &Expectations{
					Devices: rapid.SliceOfN(name, 1, 3).Draw(t, "devices"), Satisfies: s.test.Cases[i].Expect.Satisfies,
					Requests: map[string][]string{name.Draw(t, "request"): {name.Draw(t, "device")}},
				}
			}
		}
		before := s.test
		err := s.update(changed)
		again, mistakes := read(path)
		require.Empty(t, mistakes)
		if err != nil {
			require.Equal(t, content, string(again.content))
			return
		}
		written++
		for i := range count {
			want := before.Cases[i].Expect
			if changed[i] != nil {
				want = *changed[i]
			}
			require.Equal(t, want.Devices, again.test.Cases[i].Expect.Devices)
			require.Equal(t, want.Requests, again.test.Cases[i].Expect.Requests)
		}
		for line := range strings.Lines(content) {
			if comment := strings.TrimSpace(line); strings.HasPrefix(comment, "# b") {
				require.Contains(t, string(again.content), comment)
			}
		}
	})
	require.Positive(t, written)
}

// generations has a device with two generations. Only the later one counts.
const generations = `
objects:
- apiVersion: resource.k8s.io/v1
  kind: DeviceClass
  metadata: {name: gpu}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: a}
  spec: {driver: d.example.com, nodeName: node-1, pool: {name: p, generation: 1, resourceSliceCount: 1}, devices: [{name: x, attributes: {version: {int: 1}}}]}
- apiVersion: resource.k8s.io/v1
  kind: ResourceSlice
  metadata: {name: b}
  spec: {driver: d.example.com, nodeName: node-1, pool: {name: p, generation: 2, resourceSliceCount: 1}, devices: [{name: x, attributes: {version: {int: 2}}}]}
`

// TestSatisfiesLatestGeneration checks that an expression reads the devices of the latest generation, as the search does.
func TestSatisfiesLatestGeneration(t *testing.T) {
	path := written(t, header+generations+`claim: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: "device.attributes['d.example.com'].version == 2"}}]}}]}}
cases:
- {name: a, expect: {devices: [x], satisfies: "devices.all(d, d.attributes['d.example.com'].version == 2)"}}
`)
	report, err := Run(t.Context(), []string{path}, options)
	require.NoError(t, err)
	require.Empty(t, report.Files[0].Cases[0].Failures)
	require.Equal(t, Passed, report.Files[0].Cases[0].Outcome, report.Files[0].Cases[0].Error)
}

// TestNoneTakesPrintedReasons checks that the reason that the commands explain and simulate print is an expectation that passes, and
// the more detailed reason, too.
func TestNoneTakesPrintedReasons(t *testing.T) {
	path := written(t, header+generations+`claim: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}
cases:
- {name: a, expect: {none: "request r: too few matching devices are free (1 of 2 requested)"}}
- {name: b, expect: {none: "too few matching devices are free (2 requested, 1 match, 1 free)"}}
- {name: c, expect: {none: "(3 of 2 requested)"}}
`)
	report, err := Run(t.Context(), []string{path}, options)
	require.NoError(t, err)
	require.Empty(t, report.Files[0].Cases[0].Failures)
	require.Empty(t, report.Files[0].Cases[1].Failures)
	require.Len(t, report.Files[0].Cases[2].Failures, 1)
}
