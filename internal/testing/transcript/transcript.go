// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcript compares results with a file. The file has inputs, each followed by its result:
//
//	# A comment names the entry below it.
//	input => result
//
//	an input
//	of several lines
//	=>
//	a result
//	of several lines
//
// An empty line ends a result. The flag -rewrite writes the actual results into the file. Review the difference then.
package transcript

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write the results in transcripts anew")

const arrow = "=>"

// Run calls result with each input in the file, and compares the returned text with the result in the file.
func Run(t *testing.T, file string, result func(t *testing.T, input string) string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	entries := read(string(data))
	require.NotEmpty(t, entries)
	var anew strings.Builder
	afterBlock := false
	for _, e := range entries {
		if afterBlock && !strings.HasPrefix(e.before, "\n") && e.before+e.input != "" {
			anew.WriteString("\n")
		}
		anew.WriteString(e.before)
		if e.input == "" {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			got := strings.TrimRight(result(t, e.input), " \n")
			require.NotContains(t, got, "\n\n", "a result has no empty lines")
			entry := written(e.input, got)
			afterBlock = strings.Count(entry, "\n") > 1
			anew.WriteString(entry)
			if !*rewrite {
				require.Equal(t, e.result, got, "%s\n-rewrite writes results anew", e.input)
			}
		})
	}
	if *rewrite && !t.Failed() {
		require.NoError(t, os.WriteFile(file, []byte(anew.String()), 0o600))
	}
}

// entry is an input with its result. before has the comments and empty lines above the input.
type entry struct{ before, name, input, result string }

func read(text string) []entry {
	var entries []entry
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	e, comment := entry{}, ""
	for len(lines) > 0 {
		line := lines[0]
		if line == "" || strings.HasPrefix(line, "#") {
			e.before += line + "\n"
			comment = strings.TrimPrefix(line, "# ")
			lines = lines[1:]
			continue
		}
		e.input, e.result, lines = next(lines)
		if e.name, _, _ = strings.Cut(e.input, "\n"); comment != "" {
			e.name = comment
		}
		entries, e, comment = append(entries, e), entry{}, ""
	}
	return append(entries, e)
}

// next returns the input and result of the first entry, and the lines after the entry.
func next(lines []string) (input, result string, rest []string) {
	if input, result, ok := strings.Cut(lines[0]+" ", " "+arrow+" "); ok {
		return input, strings.TrimSuffix(result, " "), lines[1:]
	}
	var ins, outs []string
	for len(lines) > 0 && lines[0] != arrow {
		ins, lines = append(ins, lines[0]), lines[1:]
	}
	for lines = lines[min(1, len(lines)):]; len(lines) > 0 && lines[0] != ""; lines = lines[1:] {
		outs = append(outs, lines[0])
	}
	return strings.Join(ins, "\n"), strings.Join(outs, "\n"), lines
}

func written(input, result string) string {
	if !strings.Contains(input+result, "\n") {
		return strings.TrimSuffix(input+" "+arrow+" "+result, " ") + "\n"
	}
	if result != "" {
		result += "\n"
	}
	return input + "\n" + arrow + "\n" + result
}
