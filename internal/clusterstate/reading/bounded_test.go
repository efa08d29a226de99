// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/celset/celset/internal/clusterstate"
)

// endless is a reader that returns a YAML comment without an end.
type endless struct{ read int64 }

func (e *endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = '#'
	}
	e.read += int64(len(into))
	return len(into), nil
}

// TestInputIsBounded checks that reading an endless stream or a very long file stops early.
func TestInputIsBounded(t *testing.T) {
	defer func(usual int64) { maxInput = usual }(maxInput)
	maxInput = 1 << 20
	read := func(stdin io.Reader, names ...string) ([]clusterstate.Document, error) {
		return Documents(resource.FilenameOptions{Filenames: names}, stdin)
	}
	const want = "more than 1 MiB, the limit"
	stream := &endless{}
	_, err := read(stream, "-")
	require.ErrorContains(t, err, "stdin: "+want)
	require.Less(t, stream.read, 2*maxInput)

	folder := t.TempDir()
	object := "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
	small, long := filepath.Join(folder, "small.yaml"), filepath.Join(folder, "long.yaml")
	require.NoError(t, os.WriteFile(small, []byte(object), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "picture.png"), make([]byte, 2*maxInput), 0o600))
	found, err := read(nil, folder)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, os.WriteFile(long, []byte(object+strings.Repeat("#", int(maxInput))), 0o600))
	for _, name := range []string{long, folder} {
		_, err := read(nil, small, name)
		require.ErrorContains(t, err, long+": "+want)
	}

	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for text, want := range map[string]string{object: "", strings.Repeat("#", 2<<20): pipe + ": " + want} {
		go func() { _ = os.WriteFile(pipe, []byte(text), 0o600) }()
		found, err := read(nil, pipe)
		if want == "" {
			require.NoError(t, err)
			require.Len(t, found, 1)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}
