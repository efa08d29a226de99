// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/release"
	"github.com/celset/celset/internal/testing/render"
)

// releasedProgram is the smallest one. A release of all takes minutes.
const releasedProgram = "celset-topology-driver"

// buildRelease makes a release with one image.
func buildRelease(t *testing.T, folder string, flags ...string) (string, error) {
	t.Helper()
	cases.OnlyNightly(t, "makes releases, which takes minutes")
	return release.Build(t, folder, []string{releasedProgram}, flags...)
}

// TestReleaseTwiceIsTheSame looks at what is in a release, too: everything in it says the same of
// the images.
func TestReleaseTwiceIsTheSame(t *testing.T) {
	folder, again := filepath.Join(t.TempDir(), "dist"), filepath.Join(t.TempDir(), "dist")
	for _, each := range []string{folder, again} {
		output, err := buildRelease(t, each)
		require.NoError(t, err, output)
	}
	sums, file := checkSums(t, folder), func(name string) string {
		content, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		return string(content)
	}
	require.Equal(t, sums, checkSums(t, again))

	digest := imageIn(t, folder, "registry.example.com/celset/"+releasedProgram+":v0.0.0-test")
	reference := "registry.example.com/celset/" + releasedProgram + ":v0.0.0-test@" + digest
	require.Contains(t, file("release-notes.md"), reference)
	require.Contains(t, file("release-notes.md"), "CEL device constraints (KEP-5254) on unmodified clusters")
	for _, topology := range []string{"ring", "mesh"} {
		content := file("install-topology-driver-" + topology + ".yaml")
		require.Contains(t, content, "image: "+reference+"\n")
		objects, err := render.Decode([]byte(content))
		require.NoError(t, err)
		server(t).dryRun(t, objects)
	}
	require.NotContains(t, sums, "install-default-scheduler.yaml", "it would name no image of the release")
	for _, kinds := range []string{"placement", "profile"} {
		objects, err := render.Decode([]byte(file("install-" + kinds + "-crds.yaml")))
		require.NoError(t, err)
		server(t).dryRun(t, objects)
	}

	archive := filepath.Join(folder, "celset-0.0.0-test.tgz")
	for value, want := range map[string]string{
		"topologyDriver.enabled=true":               reference,
		"topologyDriver.enabled=true,image.tag=own": "registry.example.com/celset/" + releasedProgram + ":own",
	} {
		output, err := runHelm(t, "template", "celset", archive, "--kube-version=1.37.1", "--set=scheduler.enabled=false,"+value)
		require.NoError(t, err, output)
		require.Contains(t, output, "image: "+want+"\n")
	}
	// The layout has the same chart as the archive.
	require.Contains(t, sums, "charts/blobs/sha256/"+sums["celset-0.0.0-test.tgz"])

	name := "kubectl-celset_linux_" + runtime.GOARCH + ".tar.gz"
	require.Regexp(t, regexp.QuoteMeta("releases/download/v0.0.0-test/"+name+"\n    sha256: \""+sums[name]+"\"\n"), file("krew.yaml"))
	require.Equal(t, 1, strings.Count(file("krew.yaml"), "sha256:"), "platforms without an archive are left out")
	output, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(folder, name), "-C", folder).CombinedOutput()
	require.NoError(t, err, "%s", output)
	output, err = exec.CommandContext(t.Context(), filepath.Join(folder, "kubectl-celset"), "--version").CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "v0.0.0-test")
}

func TestReleaseRefusesMistakes(t *testing.T) {
	output, err := buildRelease(t, t.TempDir(), "--version=1.0")
	require.Error(t, err)
	require.Contains(t, output, `version "1.0": must be a semantic version with a v`)
	output, err = buildRelease(t, t.TempDir(), "--time=")
	require.Error(t, err)
	require.Contains(t, output, "must be seconds since 1970")
	output, err = buildRelease(t, t.TempDir(), "--programs=celset")
	require.Error(t, err)
	require.Contains(t, output, `program "celset": .ko.yaml has no build with that main`)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine"), nil, 0o600))
	output, err = buildRelease(t, folder)
	require.Error(t, err)
	require.Contains(t, output, "is neither empty nor a release")
	require.FileExists(t, filepath.Join(folder, "mine"))
}

// TestReleaseTool runs the tests of that module, which ./... does not reach.
func TestReleaseTool(t *testing.T) {
	cases.OnlyNightly(t, "makes releases, which takes minutes")
	command := exec.CommandContext(t.Context(), "go", "test", ".")
	command.Dir = "../../hack/tools/release"
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// checkSums returns the sums by file, which must be those of the files.
func checkSums(t *testing.T, folder string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	require.NoError(t, err)
	sums := map[string]string{}
	for line := range strings.Lines(string(content)) {
		sum, name, found := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		require.True(t, found, line)
		file, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Equal(t, sum, fmt.Sprintf("%x", sha256.Sum256(file)), name)
		if hash, found := strings.CutPrefix(name, "images/blobs/sha256/"); found {
			require.Equal(t, hash, sum)
		}
		sums[name] = sum
	}
	require.NotEmpty(t, sums)
	return sums
}

// imageIn returns the digest of an image in the layout.
func imageIn(t *testing.T, folder, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, "images", "index.json"))
	require.NoError(t, err)
	var index struct {
		Manifests []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"manifests"`
	}
	require.NoError(t, json.Unmarshal(content, &index))
	for _, manifest := range index.Manifests {
		if manifest.Annotations["org.opencontainers.image.ref.name"] == name {
			return manifest.Digest
		}
	}
	t.Fatalf("the layout has no %s", name)
	return ""
}
