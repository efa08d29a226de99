// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package redteam

import (
	"fmt"
	"strings"
	"text/template"
)

// composed executes what stands between « and » in a text, with the functions below.
func composed(text string) string {
	if !strings.Contains(text, "«") {
		return text
	}
	parsed, err := template.New("").Delims("«", "»").Funcs(template.FuncMap{
		"times": times, "nested": nested, "doubled": doubled, "textOf": textOf, "loops": loops,
		"joined": joined, "numbered": numbered, "staircase": staircase,
	}).Parse(text)
	if err != nil {
		panic(err)
	}
	var result strings.Builder
	if err := parsed.Execute(&result, nil); err != nil {
		panic(err)
	}
	return result.String()
}

func composedAll(texts map[string]string) map[string]string {
	for name, text := range texts {
		texts[name] = composed(text)
	}
	return texts
}

// times repeats a text.
func times(n int, text string) string { return strings.Repeat(text, n) }

// nested puts what is between into n pairs of left and right.
func nested(n int, left, between, right string) string {
	return times(n, left) + between + times(n, right)
}

// doubled binds v0 to seed, v1 to double with v0 in the place of X, and so on n times; body has the
// last one in the place of X.
func doubled(n int, seed, double, body string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "cel.bind(v0, %s, ", seed)
	for i := range n {
		fmt.Fprintf(&text, "cel.bind(v%d, %s, ", i+1, strings.ReplaceAll(double, "X", fmt.Sprintf("v%d", i)))
	}
	return text.String() + strings.ReplaceAll(body, "X", fmt.Sprintf("v%d", n)) + times(n+1, ")")
}

// textOf has, in the place of X in the body, an expression for a text of 2 to the power of n times ten
// letters, which costs little to make.
func textOf(n int, body string) string { return doubled(n, "'aaaaaaaaaa'", "X + X", body) }

// loops goes n times through a list of ten, one inside the other, and evaluates body at the innermost
// place; it never ends early. The variables are x0, x1 and so on.
func loops(n int, body string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "[1,2,3,4,5,6,7,8,9,10].all(x%d, ", i)
	}
	return text.String() + body + times(n, ")")
}

// joined repeats a text n times with a separator.
func joined(n int, text, separator string) string {
	return strings.TrimSuffix(times(n, text+separator), separator)
}

// numbered joins n texts. The ith one has i in the place of %d and i+1 in that of %n.
func numbered(n int, separator, text string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.NewReplacer("%d", fmt.Sprint(i), "%n", fmt.Sprint(i+1)).Replace(text)
	}
	return strings.Join(parts, separator)
}

// staircase joins lists of all depths up to n.
func staircase(n int, separator string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = nested(i+1, "[", "", "]")
	}
	return strings.Join(parts, separator)
}

func manyClaims(n int) map[string]string {
	result := make(map[string]string, n)
	for i := range n {
		result[fmt.Sprintf("claim-%04d", i)] = times(20, "v")
	}
	return result
}
