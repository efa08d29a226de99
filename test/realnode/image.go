// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
)

// Image is the image of every node. Its program is package workload. It prints the environment variables that start with
// CELSET_, and a line with the names of its devices. Then it waits for SIGTERM, or for the duration in its argument, such as
// "-for 2s".
const Image = "celset.dev/workload:local"

// programPath is the path of the program inside the image.
const programPath = "workload"

// writeImage writes an image that contains only a program, in the format of "docker save".
func writeImage(path, program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("image %s: %w", Image, err)
	}
	archive, err := imageArchive(content)
	if err != nil {
		return fmt.Errorf("image %s: %w", Image, err)
	}
	return os.WriteFile(path, archive, 0o600)
}

// imageArchive returns the archive of an image that contains only the program. For the same program, the archive is always the
// same.
func imageArchive(program []byte) ([]byte, error) {
	layer, err := archiveOf(file{name: programPath, mode: 0o755, content: program})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + programPath}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest(layer)}},
	})
	if err != nil {
		return nil, err
	}
	const layerName = "layer.tar"
	configName := digest(config) + ".json"
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{Image}, "Layers": []string{layerName},
	}})
	if err != nil {
		return nil, err
	}
	return archiveOf(
		file{name: "manifest.json", mode: 0o644, content: manifest},
		file{name: configName, mode: 0o644, content: config},
		file{name: layerName, mode: 0o644, content: layer},
	)
}

// A file is a file in an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

func archiveOf(files ...file) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.Copy(archive, bytes.NewReader(f.content)); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), archive.Close()
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
