// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// gap replaces the variable parts of a message.
const gap = "…"

var (
	// entryPattern matches an entry of the page: its anchor and name, the texts of messages, the cause and the fix.
	entryPattern = regexp.MustCompile(`^- <a id="([a-z0-9-]+)"></a>\*\*([a-z0-9-]+)\*\*: (.*?)(?:<br>(.*?))?(?: ?\*Fix:\* ?(.*))?$`)
	// textPattern matches a text of a message. Double backquotes enclose a text with backquotes.
	textPattern = regexp.MustCompile("`` (.+?) ``|`([^`]+)`")
	wordPattern = regexp.MustCompile(`\p{L}{2,}`)
)

// TestMessagesAreProvoked looks for each message of docs/errors.md in the expectations of tests.
func TestMessagesAreProvoked(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "errors.md"))
	require.NoError(t, err)
	expected, err := expectations()
	require.NoError(t, err)
	for _, mistake := range mistakesIn(string(page), expected) {
		t.Error(mistake)
	}
}

// mistakesIn returns the mistakes in a page of messages. expected contains the tests' expectations as lines.
func mistakesIn(page, expected string) (mistakes []string) {
	report := func(format string, args ...any) { mistakes = append(mistakes, fmt.Sprintf(format, args...)) }
	all := anchors(page)
	for i, anchor := range all {
		if slices.Contains(all[:i], anchor) {
			report("there are two anchors %s", anchor)
		}
	}
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		line = strings.TrimSpace(line)
		parts := entryPattern.FindStringSubmatch(line)
		if parts == nil {
			report("%s: is no entry", line)
			continue
		}
		name, cause, fix := parts[2], parts[4], parts[5]
		if parts[1] != name {
			report("%s: the anchor is %s", name, parts[1])
		}
		if !strings.HasSuffix(cause, ".") {
			report("%s: has no cause that is a sentence", name)
		}
		if !strings.HasSuffix(fix, ".") {
			report("%s: has no fix that is a sentence", name)
		}
		texts := textPattern.FindAllStringSubmatch(parts[3], -1)
		if len(texts) == 0 {
			report("%s: has no text", name)
		}
		for _, text := range texts {
			message := text[1] + text[2]
			switch {
			case len(wordPattern.FindAllString(message, -1)) < 2:
				report("%s: %q has too few words to be looked for", name, message)
			case !like(message).MatchString(expected):
				report("%s: no test expects %q", name, message)
			}
		}
	}
	return mistakes
}

// like returns a pattern for lines that contain a message. A gap matches at least one character.
func like(message string) *regexp.Regexp {
	var fixed []string
	for part := range strings.SplitSeq(strings.Trim(message, gap), gap) {
		fixed = append(fixed, regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(strings.Join(fixed, ".+"))
}

// expectations returns the lines of all tests' transcripts, and the string literals of their code. It skips the tests of this
// package, which contain texts of the pages.
func expectations() (string, error) {
	var lines strings.Builder
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(path)
		if entry.IsDir() {
			name := entry.Name()
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{root + "/bin", root + "/dist", root + "/test/docs"}, slashed)) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, "_test.go") {
			return addLiterals(&lines, path)
		}
		if strings.Contains(slashed, "/testdata/") && slices.Contains([]string{".txt", ".txtar", ".yaml"}, filepath.Ext(path)) {
			content, err := os.ReadFile(path)
			lines.Write(append(content, '\n'))
			return err
		}
		return nil
	})
	return lines.String(), err
}

func addLiterals(lines *strings.Builder, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := literal(e)
		if ok {
			lines.WriteString(text + "\n")
		}
		return !ok
	})
	return nil
}

// literal returns a string literal, or a sum with at least one literal. Other operands become gaps.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, leftOK := literal(e.X)
		right, rightOK := literal(e.Y)
		if !leftOK {
			left = gap
		}
		if !rightOK {
			right = gap
		}
		return left + right, leftOK || rightOK
	default:
		return "", false
	}
}

// TestMistakesInMessages checks pages with one mistake each.
func TestMistakesInMessages(t *testing.T) {
	const (
		right    = "## Pods\n\n- <a id=\"few\"></a>**few**: `request …: … of … devices`; `` over `devices` that ``<br>Few are free. *Fix:* Wait.\n"
		expected = "other\nthe request a: 1 of 2 devices are free\nan expression over `devices` that is long\n"
	)
	require.Empty(t, mistakesIn(right, expected))
	for name, test := range map[string]struct{ old, replacement, want string }{
		"other text":      {"devices`;", "nodes`;", `few: no test expects "request …: … of … nodes"`},
		"nothing in gap":  {"request …:", "request… a:", `few: no test expects "request… a: … of … devices"`},
		"over two lines":  {"`request …: … of … devices`", "`are free…an expression`", `few: no test expects "are free…an expression"`},
		"few words":       {"request …: … of … devices", "…: … of …", `few: "…: … of …" has too few words to be looked for`},
		"no text":         {"`request …: … of … devices`; `` over `devices` that ``", "request", "few: has no text"},
		"no cause":        {"Few are free. ", "", "few: has no cause that is a sentence"},
		"cause unended":   {"are free.", "are free", "few: has no cause that is a sentence"},
		"no fix":          {" *Fix:* Wait.", "", "few: has no fix that is a sentence"},
		"fix unended":     {"Wait.", "Wait", "few: has no fix that is a sentence"},
		"other anchor":    {`id="few"`, `id="many"`, "few: the anchor is many"},
		"twice":           {"## Pods\n", "## Few\n", "there are two anchors few"},
		"no anchor":       {`<a id="few"></a>`, "", "- **few**: `request …: … of … devices`; `` over `devices` that ``<br>Few are free. *Fix:* Wait.: is no entry"},
		"cause not there": {"<br>Few are free.", "", "few: has no cause that is a sentence"},
	} {
		require.Contains(t, right, test.old, name)
		require.Equal(t, []string{test.want}, mistakesIn(strings.Replace(right, test.old, test.replacement, 1), expected), name)
	}
}

// TestExpectationsOfTests checks that a sum of literals is one expectation, and that a variable in a sum is a gap.
func TestExpectationsOfTests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "code_test.go")
	require.NoError(t, os.WriteFile(path, []byte("package code\n\nvar a, b = \"one\" + name + (` two` + \" three\"), 4 + five\n"), 0o600))
	var lines strings.Builder
	require.NoError(t, addLiterals(&lines, path))
	require.Equal(t, "one… two three\n", lines.String())
	require.Error(t, addLiterals(&lines, path+"x"))
}
