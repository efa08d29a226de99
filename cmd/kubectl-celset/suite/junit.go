// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/xml"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/celset/celset/internal/printable"
)

// The elements of a report in the format of JUnit, as CI systems read it.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
		junitCounts
	}
	junitSuite struct {
		Name string `xml:"name,attr"`
		junitCounts
		Cases []junitCase `xml:"testcase"`
	}
	junitCounts struct {
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Time     string `xml:"time,attr"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		File    string       `xml:"file,attr"`
		Line    int          `xml:"line,attr,omitempty"`
		Time    string       `xml:"time,attr"`
		Failure *junitReason `xml:"failure"`
		Error   *junitReason `xml:"error"`
	}
	junitReason struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the report as XML in the format of JUnit.
func (r *Report) JUnit(w io.Writer) error {
	all := junitSuites{junitCounts: countsOf(&r.Counts, r.Seconds, 0)}
	for i := range r.Files {
		f := &r.Files[i]
		name := printable.Line(f.Name)
		suite := junitSuite{Name: name, junitCounts: countsOf(&f.Counts, f.Seconds, len(f.Mistakes))}
		class := strings.TrimSuffix(filepath.ToSlash(name), filepath.Ext(name))
		for _, m := range f.Mistakes {
			suite.Cases = append(suite.Cases, junitCase{
				Name: printable.Line("file " + m.Field), Class: class, File: name, Line: m.Line, Time: "0", Error: reason(m.text(name), ""),
			})
		}
		all.Tests, all.Errors = all.Tests+len(f.Mistakes), all.Errors+len(f.Mistakes)
		for j := range f.Cases {
			suite.Cases = append(suite.Cases, f.Cases[j].junit(class, name))
		}
		all.Suites = append(all.Suites, suite)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func countsOf(c *Counts, seconds float64, mistakes int) junitCounts {
	return junitCounts{Tests: c.cases() + mistakes, Failures: c.Failed, Errors: c.Errors + mistakes, Time: fmt.Sprintf("%.3f", seconds)}
}

func (r *Result) junit(class, file string) junitCase {
	c := junitCase{Name: printable.Line(r.Name), Class: class, File: file, Line: r.Line, Time: fmt.Sprintf("%.3f", r.Seconds)}
	var b strings.Builder
	r.print(&b, file)
	switch {
	case r.Outcome == Error:
		c.Error = reason(r.Error, b.String())
	case r.Outcome == Failed && len(r.Failures) > 0:
		first := r.Failures[0]
		c.Failure = reason(fmt.Sprintf("%s: got %s, want %s", first.Field, first.Got, first.Want), b.String())
	case r.Outcome == Failed:
		c.Failure = reason("expect: there is no expectation", b.String())
	}
	return c
}

// reason escapes characters that XML forbids, and keeps the line breaks of the text.
func reason(message, text string) *junitReason {
	var b strings.Builder
	_, _ = printable.NewWriter(&b).Write([]byte(text)) // a Builder returns no error
	return &junitReason{Message: printable.Line(oneLine(message)), Text: b.String()}
}
