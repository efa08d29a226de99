// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what is generated into the pages")

// What is generated stands between these two, in pages that people write.
const (
	generatedBegin = "<!-- generated: %s -->\n"
	generatedEnd   = "<!-- end -->\n"
)

var generatedSection = regexp.MustCompile(`(?s)<!-- generated: (.*?) -->\n(.*?)<!-- end -->\n`)

// checkGenerated compares the generated sections of a page, by name, with what they
// should be. With -update it writes them.
func checkGenerated(t *testing.T, page string, sections map[string]string) {
	t.Helper()
	path := filepath.Join("..", "..", page)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	result := replaceGenerated(string(content), sections)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(result), 0o644))
	}
	for name := range sections {
		require.Contains(t, result, fmt.Sprintf(generatedBegin, name), "%s has no such section", page)
	}
	if !*update {
		require.Equal(t, result, string(content), "run make generate-docs")
	}
}

func replaceGenerated(text string, sections map[string]string) string {
	return generatedSection.ReplaceAllStringFunc(text, func(section string) string {
		name := generatedSection.FindStringSubmatch(section)[1]
		if content, ok := sections[name]; ok {
			return fmt.Sprintf(generatedBegin, name) + "\n" + content + "\n" + generatedEnd
		}
		return section
	})
}

func TestReplaceGenerated(t *testing.T) {
	const page = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n<!-- generated: y -->\nkept\n<!-- end -->\n"
	require.Equal(t, "a\n<!-- generated: x -->\n\nnew\n\n<!-- end -->\nb\n<!-- generated: y -->\nkept\n<!-- end -->\n",
		replaceGenerated(page, map[string]string{"x": "new\n"}))
}
