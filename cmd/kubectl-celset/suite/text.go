// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"io"
	"strings"

	"github.com/celset/celset/internal/printable"
)

// Print writes the report as text, in the form of "go test".
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	for i := range r.Files {
		r.Files[i].print(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (f *File) print(b *strings.Builder) {
	name := printable.Line(f.Name)
	for _, m := range f.Mistakes {
		b.WriteString(m.text(name) + "\n")
	}
	for i := range f.Cases {
		f.Cases[i].print(b, name)
	}
	switch {
	case len(f.Mistakes) > 0:
		fmt.Fprintf(b, "FAIL  %s  no answer\n", name)
	case f.Failed+f.Errors > 0:
		fmt.Fprintf(b, "FAIL  %s  %.2fs  %d of %s failed\n", name, f.Seconds, f.Failed+f.Errors, counted(f.cases()))
	case f.Updated > 0:
		fmt.Fprintf(b, "ok    %s  %.2fs  %s, %d updated\n", name, f.Seconds, counted(f.cases()), f.Updated)
	case f.cases() > 0:
		fmt.Fprintf(b, "ok    %s  %.2fs  %s\n", name, f.Seconds, counted(f.cases()))
	default:
		fmt.Fprintf(b, "ok    %s  no cases to run\n", name)
	}
}

func counted(cases int) string {
	if cases == 1 {
		return "1 case"
	}
	return fmt.Sprintf("%d cases", cases)
}

// text returns the mistake on one line or, with a position in an expression, on several lines.
func (m *Mistake) text(file string) string {
	at := file
	if m.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, m.Line)
	}
	if m.Field != "" {
		at += ": " + printable.Line(m.Field)
	}
	return at + ": " + indented(m.Message, "    ")
}

func (r *Result) print(b *strings.Builder, file string) {
	if r.Outcome != Failed && r.Outcome != Error {
		return
	}
	fmt.Fprintf(b, "--- FAIL: %s/%s (%.2fs)\n", file, printable.Line(r.Name), r.Seconds)
	if r.Error != "" {
		fmt.Fprintf(b, "    %s:%d: %s\n", file, r.Line, indented(r.Error, "        "))
	}
	for _, failure := range r.Failures {
		fmt.Fprintf(b, "    %s:%d: %s\n        want: %s\n        got:  %s\n", file, r.Line, printable.Line(failure.Field),
			indented(failure.Want, "            "), indented(failure.Got, "            "))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(b, "    warning: %s\n", indented(warning, "        "))
	}
}

// indented indents all lines but the first.
func indented(text, by string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}
