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
	"text/tabwriter"

	"github.com/stretchr/testify/require"
)

// gap replaces the variable parts of a message on the page.
const gap = "…"

var (
	// entryPattern matches an entry of the page: its anchor and name, the texts of its messages, the cause and the fix.
	entryPattern = regexp.MustCompile(`^- <a id="([a-z0-9-]+)"></a>\*\*([a-z0-9-]+)\*\*: (.*?)(?:<br>(.*?))?(?: ?\*Fix:\* ?(.*))?$`)
	// textPattern matches the text of a message in backquotes. A text that contains backquotes is in double backquotes.
	textPattern = regexp.MustCompile("`` (.+?) ``|`([^`]+)`")
	wordPattern = regexp.MustCompile(`\p{L}{2,}`)
)

// TestMessagesAreProvoked requires that a test expects each message in docs/errors.md. With -v it prints a table of the
// messages and the first test that expects each.
func TestMessagesAreProvoked(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "errors.md"))
	require.NoError(t, err)
	expected, err := expectations()
	require.NoError(t, err)
	found, mistakes := provoked(string(page), expected)
	for _, mistake := range mistakes {
		t.Error(mistake)
	}
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "MESSAGE\tTEST\tTEXT")
	for _, m := range found {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", m.name, m.test, m.text)
	}
	require.NoError(t, table.Flush())
}

// expectation is a text that a test expects in an output or an error.
type expectation struct {
	// test is the position of the text, as path:line.
	test string
	// text consists of one or more lines.
	text string
}

// message is the text of a message in docs/errors.md.
type message struct {
	// name is the anchor of the message's entry.
	name, text string
	// test is the position of the first expectation that contains the text.
	test string
}

// provoked returns the messages on a page that a test expects. mistakes lists all other messages and malformed entries.
func provoked(page string, expected []expectation) (found []message, mistakes []string) {
	report := func(format string, args ...any) { mistakes = append(mistakes, fmt.Sprintf(format, args...)) }
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
			text := text[1] + text[2]
			if len(wordPattern.FindAllString(text, -1)) < 2 {
				report("%s: %q has too few words to be looked for", name, text)
				continue
			}
			pattern := like(text)
			i := slices.IndexFunc(expected, func(e expectation) bool { return pattern.MatchString(e.text) })
			if i < 0 {
				report("%s: no test expects %q", name, text)
				continue
			}
			found = append(found, message{name, text, expected[i].test})
		}
	}
	return found, mistakes
}

// like returns a pattern for lines that contain a message. Each gap matches one or more characters.
func like(message string) *regexp.Regexp {
	var fixed []string
	for part := range strings.SplitSeq(strings.Trim(message, gap), gap) {
		fixed = append(fixed, regexp.QuoteMeta(part))
	}
	return regexp.MustCompile(strings.Join(fixed, ".+"))
}

// expectations returns the lines of the transcripts and the string literals in the code of all tests. It skips this package,
// whose tests contain texts of the pages.
func expectations() (expected []expectation, err error) {
	err = filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(path)
		if entry.IsDir() {
			name := entry.Name()
			if path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{root + "/bin", root + "/dist", root + "/web", root + "/test/docs"}, slashed)) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, "_test.go") {
			literals, err := literalsOf(path)
			expected = append(expected, literals...)
			return err
		}
		if strings.Contains(slashed, "/testdata/") && slices.Contains([]string{".txt", ".txtar", ".yaml"}, filepath.Ext(path)) {
			content, err := os.ReadFile(path)
			for i, line := range strings.Split(string(content), "\n") {
				expected = append(expected, expectation{place(path, i+1), line})
			}
			return err
		}
		return nil
	})
	return expected, err
}

// place formats a position in the repository as path:line.
func place(path string, line int) string {
	return fmt.Sprintf("%s:%d", strings.TrimPrefix(filepath.ToSlash(path), root+"/"), line)
}

// literalsOf returns the string literals of a Go file.
func literalsOf(path string) (literals []expectation, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		text, ok := literal(e)
		if ok {
			literals = append(literals, expectation{place(path, files.Position(e.Pos()).Line), text})
		}
		return !ok
	})
	return literals, nil
}

// literal returns the text of a string literal or of a sum of strings. In a sum, operands that are no literals become gaps.
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

// TestMistakesInMessages checks that provoked finds the mistake in each of several pages.
func TestMistakesInMessages(t *testing.T) {
	const right = "## Pods\n\n- <a id=\"few\"></a>**few**: `request …: … of … devices`; `` over `devices` that ``<br>Few are free. *Fix:* Wait.\n"
	expected := []expectation{{"a_test.go:1", "other"}, {"a_test.go:2", "the request a: 1 of 2 devices are free\nan expression"},
		{"b_test.go:3", "an expression over `devices` that is long"}, {"b_test.go:4", "over `devices` that is long"}}
	found, mistakes := provoked(right, expected)
	require.Empty(t, mistakes)
	require.Equal(t, []message{{"few", "request …: … of … devices", "a_test.go:2"}, {"few", "over `devices` that", "b_test.go:3"}}, found)
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
		"no anchor":       {`<a id="few"></a>`, "", "- **few**: `request …: … of … devices`; `` over `devices` that ``<br>Few are free. *Fix:* Wait.: is no entry"},
		"cause not there": {"<br>Few are free.", "", "few: has no cause that is a sentence"},
	} {
		require.Contains(t, right, test.old, name)
		_, mistakes := provoked(strings.Replace(right, test.old, test.replacement, 1), expected)
		require.Equal(t, []string{test.want}, mistakes, name)
	}
}

// TestExpectationsOfTests checks that a sum of string literals becomes one expectation, with a gap for each variable.
func TestExpectationsOfTests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "code_test.go")
	require.NoError(t, os.WriteFile(path, []byte("package code\n\nvar a, b = \"one\" + name + (` two` + \" three\"), 4 + five\n"), 0o600))
	literals, err := literalsOf(path)
	require.NoError(t, err)
	require.Equal(t, []expectation{{place(path, 3), "one… two three"}}, literals)
	_, err = literalsOf(path + "x")
	require.Error(t, err)
}
