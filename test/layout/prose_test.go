// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// obscure are patterns of sentences that are hard to read: a clause or a pronoun instead of a noun, or a program that acts like
// a person. Some matches are good sentences.
var obscure = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:is|are|was|were|has|have) what\b`),
	regexp.MustCompile(`\b(?:is|are|has|have|there (?:is|are)) none\b`),
	regexp.MustCompile(`\btells? (?:whether|that|of|apart)\b`),
	regexp.MustCompile(`\b(?:of|for|with|by|from|in) which\b`),
	regexp.MustCompile(`\b(?:nobody|whoever|whatever|somebody)\b`),
	regexp.MustCompile(`\b(?:those|that) (?:of|that|which|for|in|with|who)\b`),
	regexp.MustCompile(`\b(?:stands?|standing) (?:for|there|by|before|where|in)\b`),
	regexp.MustCompile(`\bsa(?:ys|id) (?:so|of it|once)\b`),
	regexp.MustCompile(`(?:^|[.:] )(?:What|Whoever|Of the|Of a|That which|How many|For which|Which) `),
}

// maxObscure is the maximum number of matches in each area. It may only decrease. maxLong is the maximum number of sentences in
// Markdown with more than maxWords words.
var (
	maxObscure = map[string]int{"comments": 5, "comments of tests": 1, "pages": 8}
	maxLong    = 0
)

const maxWords = 35

func TestProse(t *testing.T) {
	root := filepath.Join("..", "..")
	found := map[string]int{}
	long := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		folder, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (folder == "bin" || folder == "dist" || entry.Name() == "testdata" || entry.Name() == "node_modules" || path != root && strings.HasPrefix(entry.Name(), ".")):
			return filepath.SkipDir
		case entry.IsDir():
			return nil
		}
		area, texts := "", []string(nil)
		switch filepath.Ext(path) {
		case ".go":
			area, texts = commentsOf(t, path)
		case ".md":
			area, texts = "pages", paragraphsOf(t, path)
		}
		for _, text := range texts {
			for _, pattern := range obscure {
				for _, match := range pattern.FindAllString(text, -1) {
					found[area]++
					t.Logf("%s: %q in: %s", folder, match, text)
				}
			}
			if area != "pages" {
				continue
			}
			for _, sentence := range sentenceEnd.Split(text, -1) {
				if words := len(strings.Fields(sentence)); words > maxWords {
					long++
					t.Logf("%s: %d words: %s", folder, words, sentence)
				}
			}
		}
		return nil
	}))
	for area, most := range maxObscure {
		t.Logf("%s: %d of %d places match the patterns", area, found[area], most)
		if found[area] > most {
			t.Errorf("%s: %d places match the patterns, at most %d may: write the new sentences another way; -v lists all", area, found[area], most)
		}
	}
	if long > maxLong {
		t.Errorf("pages have %d sentences of more than %d words, at most %d may: split the new ones; -v lists all", long, maxWords, maxLong)
	}
}

var sentenceEnd = regexp.MustCompile(`[.!?;:] `)

// commentsOf returns the area of a Go file, and the file's comments, each as one line.
func commentsOf(t *testing.T, path string) (area string, texts []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	if ast.IsGenerated(file) {
		return "", nil
	}
	for _, group := range file.Comments {
		texts = append(texts, strings.Join(strings.Fields(group.Text()), " "))
	}
	if strings.HasSuffix(path, "_test.go") {
		return "comments of tests", texts
	}
	return "comments", texts
}

var (
	code   = regexp.MustCompile("`[^`]*`")
	target = regexp.MustCompile(`\]\([^)]*\)`)
	item   = regexp.MustCompile(`^(?:[-*]|\d+\.) `)
)

// paragraphsOf returns the paragraphs, list items and table cells of a page, each as one line. It leaves out code and headings.
func paragraphsOf(t *testing.T, path string) (texts []string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	inCode, paragraph := false, ""
	end := func() {
		if paragraph != "" {
			texts = append(texts, paragraph)
		}
		paragraph = ""
	}
	for line := range bytes.Lines(content) {
		text := strings.TrimSpace(string(line))
		if strings.HasPrefix(text, "```") {
			inCode = !inCode
			end()
			continue
		}
		if inCode {
			continue
		}
		text = target.ReplaceAllString(code.ReplaceAllString(text, "CODE"), "]")
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
			end()
		case strings.HasPrefix(text, "|"):
			end()
			for cell := range strings.SplitSeq(strings.Trim(text, "|"), "|") {
				texts = append(texts, strings.TrimSpace(cell))
			}
		case item.MatchString(text):
			end()
			paragraph = item.ReplaceAllString(text, "")
		default:
			paragraph = strings.TrimSpace(paragraph + " " + text)
		}
	}
	end()
	return slices.DeleteFunc(texts, func(s string) bool { return strings.Trim(s, "-: ") == "" })
}
