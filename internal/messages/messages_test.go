// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/errors.md")

var root = filepath.Join("..", "..")

// TestEveryMessageHasAnEntry: whoever adds a message or changes one says what its
// reader should do, and what the code does not say any more has no entry.
func TestEveryMessageHasAnEntry(t *testing.T) {
	said, err := Scan(root)
	require.NoError(t, err)
	require.Greater(t, len(said), 80, "else the scan does not see much")
	require.NoError(t, catalogue(t).Check(said))
}

func TestPageIsUpToDate(t *testing.T) {
	path := filepath.Join(root, "docs", "errors.md")
	page := catalogue(t).Page()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(page), 0o644))
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, page, string(content), "run make generate-docs")
}

func catalogue(t *testing.T) *Catalogue {
	content, err := os.ReadFile("catalogue.yaml")
	require.NoError(t, err)
	c, err := Read(content)
	require.NoError(t, err)
	return c
}

func TestScan(t *testing.T) {
	dir := t.TempDir()
	name := "code.go"
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(`package code

import "fmt"

type t struct {
	F int `+"`json:\"a b c d\"`"+`
}

func f(s string) error {
	g("two words")
	g("one two three" + s + (", four" + " five"))
	fmt.Errorf("short: %w", nil)
	fmt.Errorf("not so very short: %w", nil)
	return fmt.Errorf(s)
}
`), 0o644))
	found := map[string][]string{}
	require.NoError(t, scanFile(dir, name, found))
	require.Equal(t, map[string][]string{
		"one two three…, four five": {name},
		"short: %w":                 {name},
		"not so very short: %w":     {name},
	}, found)
	require.Error(t, scanFile(dir, "other.go", found))
}

func TestShown(t *testing.T) {
	require.Equal(t, "claim …: … of … devices, …", shown("claim %s: %d of %d devices, %[1]v"))
}
