// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/release"
	"github.com/celset/celset/test/internal/render"
	"github.com/celset/celset/test/internal/tool"
)

// TestReleaseTwiceIsTheSame builds a release twice and requires the same files. It also checks that all parts of the release
// refer to the same images.
func TestReleaseTwiceIsTheSame(t *testing.T) {
	cases.OnlyNightly(t, "makes releases, which takes minutes")
	folder, again := filepath.Join(t.TempDir(), "dist"), filepath.Join(t.TempDir(), "dist")
	for _, each := range []string{folder, again} {
		output, err := release.Build(each)
		require.NoError(t, err, output)
	}
	sums, file := checkSums(t, folder), func(name string) string {
		content, err := os.ReadFile(filepath.Join(folder, name))
		require.NoError(t, err)
		return string(content)
	}
	require.Equal(t, sums, checkSums(t, again))

	references := strings.Fields(file("images.txt"))
	require.Len(t, references, 4)
	for _, reference := range references {
		tag, digest, _ := strings.Cut(reference, "@")
		program := strings.TrimSuffix(path.Base(tag), ":"+release.Version)
		require.Equal(t, release.Registry+"/"+program+":"+release.Version, tag)
		require.Contains(t, file("images/"+program+"/index.json"), fmt.Sprintf(`"digest": %q, "annotations": {"org.opencontainers.image.ref.name": %q`, digest, tag))
		require.Contains(t, file("release-notes.md"), "- `"+reference+"`\n")
	}
	require.Contains(t, file("release-notes.md"), "CEL device constraints (KEP-5254) on unmodified clusters")
	reference := references[slices.IndexFunc(references, func(each string) bool { return strings.Contains(each, "celset-topology-driver") })]
	for name := range sums {
		if !strings.HasPrefix(name, "install-") {
			continue
		}
		require.Contains(t, file(name), "app.kubernetes.io/version: "+release.Version+"\n", name)
		require.NotContains(t, file(name), "version: dev\n", name)
		for _, image := range regexp.MustCompile(`(?m)^ *image: (.*)$`).FindAllStringSubmatch(file(name), -1) {
			require.Contains(t, references, image[1], name)
		}
	}
	for _, name := range []string{"topology-driver-ring", "topology-driver-mesh", "placement-crds", "profile-crds"} {
		objects, err := render.Decode([]byte(file("install-" + name + ".yaml")))
		require.NoError(t, err)
		server(t).dryRun(t, objects)
	}

	archive := filepath.Join(folder, "celset-"+strings.TrimPrefix(release.Version, "v")+".tgz")
	for value, want := range map[string]string{
		"topologyDriver.enabled=true":               reference,
		"topologyDriver.enabled=true,image.tag=own": "registry.example.com/celset/celset-topology-driver:own",
	} {
		output, err := runHelm(t, "template", "celset", archive, "--kube-version=1.37.2", "--set=scheduler.enabled=false,"+value)
		require.NoError(t, err, output)
		require.Contains(t, output, "image: "+want+"\n")
	}

	name := "kubectl-celset_linux_" + runtime.GOARCH + ".tar.gz"
	require.Regexp(t, regexp.QuoteMeta("releases/download/"+release.Version+"/"+name+"\n    sha256: \""+sums[name]+"\"\n"), file("krew.yaml"))
	require.Equal(t, 5, strings.Count(file("krew.yaml"), strings.Repeat("0", 64)), "krew takes no platform without an archive")
	output, err := exec.CommandContext(t.Context(), "tar", "-xzf", filepath.Join(folder, name), "-C", folder).CombinedOutput()
	require.NoError(t, err, "%s", output)
	output, err = exec.CommandContext(t.Context(), filepath.Join(folder, "kubectl-celset"), "--version").CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), release.Version)
	require.Regexp(t, `^kubectl-celset: go1\.`, file(strings.Replace(name, ".tar.gz", ".modules.txt", 1)))
	requireChartMetadata(t, archive, references)
	requireVEX(t, file("celset.openvex.json"), references)
	schemas, err := filepath.Glob("../../schemas/*.json")
	require.NoError(t, err)
	for _, schema := range schemas {
		require.Contains(t, sums, filepath.Base(schema))
	}
	requirePushed(t, folder)
}

// requireChartMetadata checks the README and the annotations in the chart's archive, which registries and Artifact Hub show.
func requireChartMetadata(t *testing.T, archive string, references []string) {
	t.Helper()
	readme, err := runHelm(t, "show", "readme", archive)
	require.NoError(t, err, readme)
	require.Contains(t, readme, "| `scheduler.enabled` | `true` |")
	text, err := runHelm(t, "show", "chart", archive)
	require.NoError(t, err, text)
	var metadata struct {
		Version     string            `json:"version"`
		AppVersion  string            `json:"appVersion"`
		Annotations map[string]string `json:"annotations"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &metadata))
	require.Equal(t, release.Version, "v"+metadata.Version)
	require.Equal(t, release.Version, metadata.AppVersion)
	require.Equal(t, "true", metadata.Annotations["artifacthub.io/prerelease"])
	var images []struct{ Name, Image string }
	require.NoError(t, yaml.UnmarshalStrict([]byte(metadata.Annotations["artifacthub.io/images"]), &images))
	var named []string
	for _, image := range images {
		named = append(named, image.Image)
		require.Contains(t, image.Image, "/"+image.Name+":")
	}
	require.ElementsMatch(t, references, named)
	var changes []string
	require.NoError(t, yaml.UnmarshalStrict([]byte(metadata.Annotations["artifacthub.io/changes"]), &changes))
	require.Contains(t, changes, "Sets of devices")
	require.NotContains(t, strings.Join(changes, ""), "](")
}

// requireVEX requires that a VEX document has a statement with a reason about each image of the release, and the time of the
// release.
func requireVEX(t *testing.T, text string, references []string) {
	t.Helper()
	var document struct {
		ID         string `json:"@id"`
		Timestamp  string `json:"timestamp"`
		Statements []struct {
			Vulnerability struct{ Name string }
			Products      []struct {
				ID string `json:"@id"`
			}
			Status, Justification string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	require.Equal(t, "https://github.com/celset/celset/releases/download/"+release.Version+"/celset.openvex.json", document.ID)
	require.Equal(t, "2025-06-15T15:06:40Z", document.Timestamp)
	want := []string{"pkg:golang/github.com/celset/celset@" + release.Version}
	for _, reference := range references {
		tag, digest, _ := strings.Cut(reference, "@")
		repository := strings.TrimSuffix(tag, ":"+release.Version)
		want = append(want, "pkg:oci/"+path.Base(repository)+"@"+strings.Replace(digest, ":", "%3A", 1)+"?repository_url="+repository)
	}
	require.NotEmpty(t, document.Statements)
	for _, statement := range document.Statements {
		require.Regexp(t, `^(CVE|GO|GHSA)-`, statement.Vulnerability.Name)
		require.Equal(t, "not_affected", statement.Status)
		require.NotEmpty(t, statement.Justification)
		var products []string
		for _, product := range statement.Products {
			products = append(products, product.ID)
		}
		require.ElementsMatch(t, want, products, statement.Vulnerability.Name)
	}
}

// requirePushed pushes a release to a local registry. Then it corrupts a file of the release, and requires that pushing fails.
func requirePushed(t *testing.T, folder string) {
	t.Helper()
	crane, err := tool.Build("crane")
	require.NoError(t, err)
	registry := exec.CommandContext(t.Context(), crane, "registry", "serve", "--address=127.0.0.1:0")
	log, err := registry.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, registry.Start())
	t.Cleanup(func() { _ = registry.Wait() })
	lines := bufio.NewScanner(log)
	require.True(t, lines.Scan())
	_, port, found := strings.Cut(lines.Text(), "serving on port ")
	require.True(t, found, lines.Text())
	go func() {
		for lines.Scan() {
		}
	}()
	address, list := "127.0.0.1:"+port+"/celset", filepath.Join(folder, "images.txt")
	images, err := os.ReadFile(list)
	require.NoError(t, err)
	images = bytes.ReplaceAll(images, []byte(release.Registry), []byte(address))
	push := func(images []byte) (references, output string, err error) {
		require.NoError(t, os.WriteFile(list, images, 0o600))
		file := filepath.Join(t.TempDir(), "references")
		printed, err := exec.CommandContext(t.Context(), "../../hack/push.sh", folder, file, "--plain-http").CombinedOutput()
		content, readErr := os.ReadFile(file)
		require.NoError(t, readErr)
		return string(content), string(printed), err
	}
	first, output, err := push(images)
	require.NoError(t, err, output)
	require.Equal(t, strings.ReplaceAll(string(images), ":"+release.Version, ""), first[:strings.Index(first, address+"/charts/")])
	require.Regexp(t, regexp.QuoteMeta(address)+`/charts/celset@sha256:[0-9a-f]{64}\n$`, first)
	for _, reference := range strings.Fields(first) {
		output, err := exec.CommandContext(t.Context(), crane, "manifest", reference).CombinedOutput()
		require.NoError(t, err, "%s", output)
	}
	again, output, err := push(images)
	require.NoError(t, err, output)
	require.Equal(t, first, again)
	_, output, err = push(bytes.Replace(images, []byte("@sha256:"), []byte("@sha256:0"), 1))
	require.Error(t, err)
	require.Contains(t, output, "take another version, or delete the tag")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "celset-"+strings.TrimPrefix(release.Version, "v")+".tgz"), nil, 0o600))
	_, output, err = push(images)
	require.Error(t, err)
	require.Contains(t, output, "charts/celset:"+strings.TrimPrefix(release.Version, "v")+": take another version, or delete the tag")
}

func TestReleaseRefusesMistakes(t *testing.T) {
	cases.OnlyNightly(t, "builds the programs that make releases, which takes minutes")
	for variable, want := range map[string]string{
		"VERSION=1.0":        "VERSION=1.0: must be a semantic version with a v",
		"VERSION=v0.36.1":    "VERSION=v0.36.1: must be v0.37 and a patch version, because go.mod has Kubernetes 1.37",
		"SOURCE_DATE_EPOCH=": "must be seconds since 1970",
	} {
		output, err := release.Build(t.TempDir(), variable)
		require.Error(t, err)
		require.Contains(t, output, want)
	}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine"), nil, 0o600))
	output, err := release.Build(folder)
	require.Error(t, err)
	require.Contains(t, output, "is neither empty nor a release")
	require.FileExists(t, filepath.Join(folder, "mine"))
}

// checkSums verifies the checksums of the release's files, and returns the checksum of each file.
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
		if _, hash, found := strings.Cut(name, "/blobs/sha256/"); found {
			require.Equal(t, hash, sum)
		}
		sums[name] = sum
	}
	require.NotEmpty(t, sums)
	return sums
}
