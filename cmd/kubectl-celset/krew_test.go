// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// krewPlugin holds the fields that the test reads of a plugin manifest in krew's API v1alpha2.
type krewPlugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// TestKrewManifest fills in the template as krew-release-bot does. krew requires a short description of at most 50 characters,
// and an archive with its checksum for each platform.
func TestKrewManifest(t *testing.T) {
	archive := func(address, tag string) string {
		return "uri: " + strings.ReplaceAll(address, "{{ .TagName }}", tag) + "\n    sha256: " + strings.Repeat("a", 64)
	}
	manifest, err := template.New(".krew.yaml").Funcs(template.FuncMap{"addURIAndSha": archive}).ParseFiles(filepath.Join("..", "..", ".krew.yaml"))
	require.NoError(t, err)
	var raw bytes.Buffer
	require.NoError(t, manifest.Execute(&raw, map[string]string{"TagName": "v0.37.2"}))
	var plugin krewPlugin
	require.NoError(t, yaml.UnmarshalStrict(raw.Bytes(), &plugin))
	require.Equal(t, "v0.37.2", plugin.Spec.Version)
	require.Equal(t, "krew.googlecontainertools.github.com/v1alpha2", plugin.APIVersion)
	require.Equal(t, "Plugin", plugin.Kind)
	require.Equal(t, "celset", plugin.Metadata.Name)
	require.LessOrEqual(t, len(plugin.Spec.ShortDescription), 50)
	require.NotEmpty(t, plugin.Spec.Platforms)
	seen := make(map[string]bool)
	for _, platform := range plugin.Spec.Platforms {
		labels := platform.Selector.MatchLabels
		key := labels["os"] + "_" + labels["arch"]
		require.False(t, seen[key], key)
		seen[key] = true
		require.Equal(t, plugin.Spec.Homepage+"/releases/download/"+plugin.Spec.Version+"/kubectl-celset_"+key+".tar.gz", platform.URI)
		require.Len(t, platform.SHA256, 64)
		require.Equal(t, labels["os"] == "windows", strings.HasSuffix(platform.Bin, ".exe"))
		require.Equal(t, "kubectl-celset", strings.TrimSuffix(platform.Bin, ".exe"))
	}
}
