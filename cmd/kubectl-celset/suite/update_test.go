// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReplaceFile checks that --update changes a file at once, keeps its mode and its symbolic links, and leaves nothing behind.
func TestReplaceFile(t *testing.T) {
	path := written(t, "old")
	require.NoError(t, os.Chmod(path, 0o640))
	link := filepath.Join(filepath.Dir(path), "link.yaml")
	require.NoError(t, os.Symlink("test.yaml", link))
	before, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, before.Close()) }()
	require.NoError(t, replaceFile(link, []byte("new")))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(content))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	info, err = os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type())
	old, err := io.ReadAll(before)
	require.NoError(t, err)
	require.Equal(t, "old", string(old), "the old content is never cut")
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// TestUpdateOfCarriageReturns checks that all lines of a file end in the same way.
func TestUpdateOfCarriageReturns(t *testing.T) {
	path := written(t, strings.ReplaceAll(header+"cases:\n- name: a\n  expect:\n    devices: [a] # b\n- name: c\n", "\n", "\r\n"))
	s, mistakes := read(path)
	require.Empty(t, mistakes)
	require.NoError(t, s.update(map[int]*Expectations{0: {Devices: []string{"x"}}, 1: {Devices: []string{"z"}}}))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(content), "    devices: [x] # b\r\n- name: c\r\n  expect:\r\n    devices: [z]\r\n")
	require.NotRegexp(t, "[^\r]\n|\r\r", string(content))
}
