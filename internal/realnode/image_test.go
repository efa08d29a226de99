// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// unpack returns the contents of an archive by their names.
func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	reader := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		require.Equal(t, byte(tar.TypeReg), header.Typeflag)
		files[header.Name], err = io.ReadAll(reader)
		require.NoError(t, err)
	}
}

func TestImageArchive(t *testing.T) {
	program := []byte("a program")
	archive, err := imageArchive(program)
	require.NoError(t, err)
	again, err := imageArchive(program)
	require.NoError(t, err)
	require.Equal(t, archive, again)

	files := unpack(t, archive)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	require.NoError(t, json.Unmarshal(files["manifest.json"], &manifest))
	require.Len(t, manifest, 1)
	require.Equal(t, []string{Image}, manifest[0].RepoTags)
	require.Len(t, manifest[0].Layers, 1)
	layer := files[manifest[0].Layers[0]]

	var config struct {
		OS     string
		Config struct{ Entrypoint []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	require.NoError(t, json.Unmarshal(files[manifest[0].Config], &config))
	require.Equal(t, digest(files[manifest[0].Config])+".json", manifest[0].Config)
	require.Equal(t, "linux", config.OS)
	require.Equal(t, []string{"sha256:" + digest(layer)}, config.RootFS.DiffIDs)
	require.Equal(t, []string{"/workload"}, config.Config.Entrypoint)

	content := tar.NewReader(bytes.NewReader(layer))
	header, err := content.Next()
	require.NoError(t, err)
	require.Equal(t, "workload", header.Name)
	require.Equal(t, int64(0o755), header.Mode, "executable")
	require.Equal(t, map[string][]byte{"workload": program}, unpack(t, layer))
}

func TestWriteImageFails(t *testing.T) {
	err := writeImage(filepath.Join(t.TempDir(), "image.tar"), "/no/such/program")
	require.ErrorContains(t, err, "image celset.dev/workload:local: open /no/such/program")
}
