// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/controlplane"
)

// koConfig has the fields that the tests read of ko's configuration.
type koConfig struct {
	DefaultBaseImage string   `json:"defaultBaseImage"`
	DefaultPlatforms []string `json:"defaultPlatforms"`
	Builds           []struct {
		ID      string   `json:"id"`
		Dir     string   `json:"dir"` // directory of the module, empty for the root
		Main    string   `json:"main"`
		Env     []string `json:"env"`
		Flags   []string `json:"flags"`
		Ldflags []string `json:"ldflags"`
	} `json:"builds"`
}

// TestBaseIsTheKnownOne checks that ko's cache contains the configured base image. Otherwise ko would download an image.
func TestBaseIsTheKnownOne(t *testing.T) {
	command := exec.CommandContext(t.Context(), "../../hack/ko.sh", "-c", "cat $KOCACHE/img/index.json")
	command.Env = append(os.Environ(), "KO=/bin/sh")
	output, err := command.Output()
	require.NoError(t, err)
	var index struct {
		Manifests []struct {
			Digest string `json:"digest"`
		} `json:"manifests"`
	}
	require.NoError(t, json.Unmarshal(output, &index))
	require.Len(t, index.Manifests, 3, "that of all platforms, and each")
	_, known, _ := strings.Cut(readKoConfig(t).DefaultBaseImage, "@")
	require.Equal(t, known, index.Manifests[0].Digest, "the image was changed: if that is intended, change .ko.yaml, too")
}

func readKoConfig(t *testing.T) (config koConfig) {
	t.Helper()
	content, err := os.ReadFile("../../.ko.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, &config))
	return config
}

// TestImagesAreBuilt checks that ko can build an image for each rendered container. The images themselves are built only for
// releases.
func TestImagesAreBuilt(t *testing.T) {
	config := readKoConfig(t)
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	built := map[string]bool{}
	for _, build := range config.Builds {
		require.FileExists(t, filepath.Join("../..", build.Dir, build.Main, "main.go"))
		require.Equal(t, build.ID, filepath.Base(build.Main), "images are named like programs")
		require.Contains(t, string(makefile), filepath.Join(build.Dir, build.Main))
		built[build.ID] = true
		flags := strings.Join(build.Ldflags, " ")
		if build.ID == controlplane.CelsetScheduler {
			require.Equal(t, "-s -w "+controlplane.VersionStamp(kubernetesVersion(t))+" {{.Env.LDFLAGS}}", flags, "it is a kube-scheduler")
		} else {
			require.Equal(t, "-s -w {{.Env.LDFLAGS}}", flags)
		}
	}
	for _, folder := range kustomizations(t) {
		for _, object := range rendered(t, folder) {
			containers, _, err := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			require.NoError(t, err)
			for _, container := range containers {
				image, _ := container.(map[string]any)["image"].(string)
				name, tag, _ := strings.Cut(image, ":")
				require.True(t, built[name], "%s of %s", image, folder)
				require.Equal(t, "dev", tag)
			}
		}
	}
}

// kubernetesVersion returns the version of Kubernetes in go.mod.
func kubernetesVersion(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	required := regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)$`).FindStringSubmatch(string(content))
	require.Len(t, required, 2, "go.mod requires Kubernetes once")
	return required[1]
}
