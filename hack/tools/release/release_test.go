// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// written makes a release of an image and an index as a chart.
func written(t *testing.T, registry string, image v1.Image, index v1.ImageIndex) string {
	t.Helper()
	folder := t.TempDir()
	images, err := layout.Write(filepath.Join(folder, imageFolder), empty.Index)
	must(t, err)
	must(t, images.AppendImage(image, named(registry, "program", "v1.0.0")))
	charts, err := layout.Write(filepath.Join(folder, chartFolder), empty.Index)
	must(t, err)
	must(t, charts.AppendIndex(index, named(registry, "charts/chart", "1.0.0")))
	return folder
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://") + "/celset"
	image, err := random.Image(100, 2)
	must(t, err)
	index, err := random.Index(100, 1, 2)
	must(t, err)
	folder, references := written(t, address, image, index), filepath.Join(t.TempDir(), "references")
	// A second time it is there already.
	for range 2 {
		must(t, push(t.Context(), folder, references))
	}
	digest, err := image.Digest()
	must(t, err)
	content, err := os.ReadFile(references)
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if len(lines) != 2 || lines[0] != address+"/program@"+digest.String() {
		t.Fatalf("got %q", lines)
	}
	for _, line := range lines {
		reference, err := name.ParseReference(line)
		must(t, err)
		_, err = remote.Head(reference)
		must(t, err)
	}
	other, err := random.Image(100, 1)
	must(t, err)
	err = push(t.Context(), written(t, address, other, index), "")
	if err == nil || !strings.Contains(err.Error(), "take another version, or delete the tag") {
		t.Fatalf("a released tag was moved: %v", err)
	}
}

func TestSection(t *testing.T) {
	const changes = "# Changelog\n\n## Unreleased\n\n- next\n\n### More\n\n- too\n\n## v1.0.0 (2026-01-01)\n\n- first\n"
	for version, want := range map[string]string{"v1.0.0": "- first", "v1.0.1": "- next\n\n### More\n\n- too"} {
		got, err := section(changes, version)
		must(t, err)
		if got != want {
			t.Errorf("%s: got %q", version, got)
		}
	}
	if _, err := section("# Changelog\n", "v1.0.0"); err == nil {
		t.Error("no section, and no error")
	}
}

func TestSetImagesTakesEachLineOnce(t *testing.T) {
	released := &images{registry: "registry.example.com", version: "v1.0.0"}
	if _, err := setImages([]byte("image:\n  registry: \"\"\n  digests: {}\n"), released); err == nil || !strings.Contains(err.Error(), `"  tag: dev" 0 times`) {
		t.Errorf("got %v", err)
	}
}

func TestBaseIsTheKnownOne(t *testing.T) {
	base, err := baseImage()
	must(t, err)
	must(t, checkBase(base))
	other, err := random.Index(10, 1, 1)
	must(t, err)
	if err := checkBase(other); err == nil || !strings.Contains(err.Error(), "the base image has changed to sha256:") {
		t.Errorf("got %v", err)
	}
}
