// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/errors.md")

var root = filepath.Join("..", "..")

// TestEveryMessageHasAnEntry: whoever adds a message says what its reader should do.
func TestEveryMessageHasAnEntry(t *testing.T) {
	found, err := Scan(root)
	require.NoError(t, err)
	require.Greater(t, len(found), 80, "else the scan does not see much")
	known := slices.Concat(places, notMessages, textsOf(Catalogue()))
	for text, files := range found {
		if !slices.Contains(known, text) {
			t.Errorf("%v: %q: add an entry with cause and cure to the catalogue in internal/messages", files, text)
		}
	}
}

// TestEveryEntryIsAMessage: what the code does not say any more has no entry.
func TestEveryEntryIsAMessage(t *testing.T) {
	found, err := Scan(root)
	require.NoError(t, err)
	for _, group := range Catalogue() {
		for _, entry := range group.Entries {
			for _, text := range entry.Texts {
				if said := found[text] != nil; said == entry.Elsewhere {
					t.Errorf("entry %s: %q: that our code says it is %v", entry.ID, text, said)
				}
			}
		}
	}
	for _, text := range slices.Concat(places, notMessages) {
		if found[text] == nil {
			t.Errorf("%q: the code does not say that", text)
		}
	}
}

func TestEntriesAreComplete(t *testing.T) {
	ids := map[string]bool{}
	for _, group := range Catalogue() {
		require.NotEmpty(t, group.Entries, group.Title)
		for _, entry := range group.Entries {
			require.False(t, ids[entry.ID], "two entries %s", entry.ID)
			ids[entry.ID] = true
			require.NotEmpty(t, entry.Texts, entry.ID)
			for _, sentence := range []string{entry.Cause, entry.Cure} {
				require.True(t, strings.HasSuffix(sentence, "."), "%s: %q is no sentence", entry.ID, sentence)
			}
		}
	}
	texts := textsOf(Catalogue())
	slices.Sort(texts)
	require.Equal(t, slices.Compact(slices.Clone(texts)), texts, "a text with two entries")
}

func TestPageIsUpToDate(t *testing.T) {
	path := filepath.Join(root, "docs", "errors.md")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(Page(Catalogue())), 0o644))
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, Page(Catalogue()), string(content), "run make generate-docs")
}

func textsOf(groups []Group) []string {
	var texts []string
	for _, group := range groups {
		for _, entry := range group.Entries {
			texts = append(texts, entry.Texts...)
		}
	}
	return texts
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
