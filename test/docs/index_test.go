// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIndexHasEveryPage: a page that docs/README.md does not link to is found by
// nobody.
func TestIndexHasEveryPage(t *testing.T) {
	index := filepath.Join("docs", "README.md")
	content, err := os.ReadFile(filepath.Join("..", "..", index))
	require.NoError(t, err)
	for _, page := range pages {
		if page == index || page == "README.md" {
			continue
		}
		relative, err := filepath.Rel("docs", page)
		require.NoError(t, err)
		require.Contains(t, string(content), "]("+filepath.ToSlash(relative)+")", "%s has no link to %s", index, page)
	}
}

// TestPagesHaveTitles: the first line of each is its one title.
func TestPagesHaveTitles(t *testing.T) {
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join("..", "..", page))
		require.NoError(t, err)
		found, err := parse(page, string(content))
		require.NoError(t, err)
		titles := strings.Count("\n"+string(content), "\n# ")
		for _, b := range found {
			titles -= strings.Count("\n"+b.text, "\n# ")
		}
		require.True(t, strings.HasPrefix(string(content), "# "), page)
		require.Equal(t, 1, titles, page)
	}
}
