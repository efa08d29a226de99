// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// maxNodes is the maximum number of nodes in the text. Nodes with more sets come first.
const maxNodes = 5

// maxLine is the maximum length of a condition in the text, about a terminal's width.
const maxLine = 100

// Print writes the report as text.
func (r *Report) Print(w io.Writer) error {
	p := &printer{w: w}
	p.findings(0, nil, r.Warnings)
	for i, object := range r.Objects {
		if i > 0 || len(r.Warnings) > 0 {
			p.line(0, "")
		}
		p.object(object)
	}
	return p.err
}

// printer writes text and keeps the first error of its writer.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(indent int, format string, args ...any) {
	if p.err == nil {
		text := strings.Repeat("  ", indent) + fmt.Sprintf(format, args...)
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(text, " "))
	}
}

// entry writes a line that starts with a label.
func (p *printer) entry(label, format string, args ...any) {
	p.line(2, "%-10s %s", label, fmt.Sprintf(format, args...))
}

func (p *printer) object(o Object) {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	p.line(0, "%s %s", o.Kind, name)
	p.findings(1, o.Errors, o.Warnings)
	if o.AddedAttributes != nil {
		o.AddedAttributes.print(p)
	}
	for _, constraint := range o.Constraints {
		p.constraint(constraint)
	}
	for _, preference := range o.Preferences {
		p.preference(preference)
	}
	for _, constraint := range o.NodeSetConstraints {
		p.line(1, "node set constraint %s", constraint.Name)
		p.entry("defined", "%s", constraint.Source)
	}
}

// findings writes findings. A finding may have several lines.
func (p *printer) findings(indent int, errors, warnings []Finding) {
	show := func(level string, of []Finding) {
		for _, finding := range of {
			first, rest, _ := strings.Cut(finding.Message, "\n")
			p.line(indent, "%s: %s", level, first)
			for line := range strings.Lines(rest) {
				p.line(indent+1, "%s", strings.TrimRight(line, "\n"))
			}
		}
	}
	show("error", errors)
	show("warning", warnings)
}

func (p *printer) constraint(c Constraint) {
	p.line(1, "constraint %s", c.Name)
	byDefault := ""
	if c.Default {
		byDefault = " (default)"
	}
	p.entry("defined", "%s%s", c.Source, byDefault)
	if c.Field != "" {
		p.entry("used", "%s: %s", c.Field, covers(c.Requests))
	}
	if c.Type == "" {
		return
	}
	p.facts(&c.Facts)
	p.conjuncts(c)
	if c.Search == NotKnown {
		p.entry("search", "not known: %s", c.NotKnown)
	}
	p.nodes(c.Nodes)
}

func covers(requests []string) string {
	if len(requests) == 0 {
		return "all requests"
	}
	return "request " + strings.Join(requests, ", ")
}

func (p *printer) preference(of Preference) {
	p.line(1, "preference %s", of.Name)
	p.entry("defined", "%s", of.Source)
	if !of.Assumed || len(of.Requests) > 0 {
		p.entry("about", "%s", covers(of.Requests))
	}
	if of.Policy != "" {
		p.sizes(&of.Facts)
		p.entry("policy", "%s", of.Policy)
	} else if of.Type != "" {
		p.facts(&of.Facts)
		p.entry("search", "%s", of.search())
	}
	p.nodes(of.Nodes)
}

func (of Preference) search() string {
	if of.Read {
		return "skips sets that can't be better"
	}
	return "evaluates one set after the other until the budget is used up"
}

func (p *printer) sizes(c *Facts) {
	assumed := ""
	switch {
	case c.Assumed && c.counted:
		assumed = " (by --count)"
	case c.Assumed:
		assumed = " (assumed: to change it, set --count)"
	}
	p.entry("devices", "%s%s", joinInts(c.Devices), assumed)
}

func (p *printer) facts(c *Facts) {
	p.sizes(c)
	p.entry("type", "%s", c.Type)
	for i, attribute := range c.Reads {
		p.entry(labelOf("reads", i), "%s/%s%s", attribute.Domain, attribute.Name, attribute.published())
	}
	if c.ReadsAll {
		p.entry(labelOf("reads", len(c.Reads)), "any attribute, because the expression computes the name")
	}
	estimate := "at most " + number(c.Cost) + " CEL cost units"
	if c.Cost == math.MaxUint64 {
		estimate = "any number of CEL cost units"
	}
	p.entry("cost", "%s for one evaluation, estimated; the limit is %s", estimate, number(c.CostLimit))
}

// labelOf returns the label for the first of several entries, and "" for the others.
func labelOf(label string, i int) string {
	if i > 0 {
		return ""
	}
	return label
}

func (a Attribute) published() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a.Types)) {
		parts = append(parts, fmt.Sprintf("%s on %d devices", name, a.Types[name]))
	}
	if a.Missing > 0 {
		parts = append(parts, fmt.Sprintf("missing on %d", a.Missing))
	}
	if len(parts) == 0 {
		return ""
	}
	from := ""
	if len(a.From) > 0 {
		from = ", from DeviceAttributes " + strings.Join(a.From, ", ")
	}
	return ": " + strings.Join(parts, ", ") + from
}

func (p *printer) conjuncts(c Constraint) {
	for i, conjunct := range c.Conjuncts {
		p.entry(labelOf("conditions", i), "%d:%d %s: %s", conjunct.Line, conjunct.Column, conjunct.Understanding.effect(), shortened(conjunct.Text))
	}
	switch {
	case c.TooExpensive:
		p.entry("search", "evaluates one set after the other, because one evaluation might exceed the cost limit")
	case !c.Pruned:
		p.entry("search", "evaluates one set after the other, because it can't use the expression to rule out sets early")
	}
}

// effect returns how the search uses a condition.
func (u Understanding) effect() string {
	switch u {
	case Understood:
		return "rules out sets early"
	case PartlyUnderstood:
		return "rules out some sets early"
	default:
		return "is evaluated only for complete sets"
	}
}

func shortened(text string) string {
	if runes := []rune(text); len(runes) > maxLine {
		return string(runes[:maxLine-3]) + "..."
	}
	return text
}

func (p *printer) nodes(of []NodeSets) {
	most := slices.Clone(of)
	slices.SortStableFunc(most, func(a, b NodeSets) int { return b.Sets.Cmp(a.Sets) })
	for i, on := range most {
		if i == maxNodes {
			p.entry("", "and %d more nodes with no more sets", len(most)-i)
			return
		}
		unusable := ""
		if on.Unusable > 0 {
			unusable = fmt.Sprintf("; %d more can't be used because of taints or feature gates", on.Unusable)
		}
		p.entry(labelOf("sets", i), "%s: %s from the %d matching devices, %s from the %d that are free%s", on.Node, bigNumber(on.Sets), on.Candidates, bigNumber(on.FreeSets), on.Free, unusable)
	}
}

func joinInts(values []int) string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = strconv.Itoa(value)
	}
	return strings.Join(texts, " or ")
}

func bigNumber(n *big.Int) string { return grouped(n.String()) }

func number(n uint64) string { return grouped(strconv.FormatUint(n, 10)) }

// grouped inserts commas between groups of three digits.
func grouped(digits string) string {
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}
