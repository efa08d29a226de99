// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

func TestAdapt(t *testing.T) {
	spec := corev1.PodSpec{
		SchedulerName: "celset-scheduler",
		Containers: []corev1.Container{
			{Name: "a", Image: "registry.k8s.io/pause:3.10", Args: []string{"-for", "1s"}},
			{Name: "b"},
		},
	}
	Adapt(&spec)
	require.True(t, spec.HostNetwork)
	require.False(t, *spec.AutomountServiceAccountToken)
	require.False(t, *spec.EnableServiceLinks)
	require.Equal(t, "celset-scheduler", spec.SchedulerName)
	require.Equal(t, []corev1.Container{
		{Name: "a", Image: Image, ImagePullPolicy: corev1.PullNever, Args: []string{"-for", "1s"}},
		{Name: "b", Image: Image, ImagePullPolicy: corev1.PullNever},
	}, spec.Containers)
}

func TestAdaptManifest(t *testing.T) {
	got, err := AdaptManifest([]byte(`# A template, which stays as it is.
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: template}
spec: {spec: {}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  schedulerName: celset-scheduler
  containers:
  - name: main
    image: registry.k8s.io/pause:3.10
`))
	require.NoError(t, err)
	require.Equal(t, `# A template, which stays as it is.
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: template}
spec: {spec: {}}
---
apiVersion: v1
kind: Pod
metadata:
  name: pod
spec:
  automountServiceAccountToken: false
  containers:
  - image: celset.dev/workload:local
    imagePullPolicy: Never
    name: main
    resources: {}
  enableServiceLinks: false
  hostNetwork: true
  schedulerName: celset-scheduler
status: {}
`, string(got))

	_, err = AdaptManifest([]byte("kind: Pod\nspec: {images: []}\n"))
	require.ErrorContains(t, err, `document 1: error unmarshaling JSON: while decoding JSON: json: unknown field "images"`)
	_, err = AdaptManifest([]byte("a: 1\n---\n{"))
	require.ErrorContains(t, err, "document 2: ")
}

func TestWriteConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, writeConfig(path, "path = {{.Path}}\nport = {{.Port}}\non = {{.On}}\n", map[string]any{
		"Path": `/a dir/with "quotes"`, "Port": 7, "On": true,
	}))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "path = \"/a dir/with \\\"quotes\\\"\"\nport = 7\non = true\n", string(content))

	require.ErrorContains(t, writeConfig(path, "{{.Absent}}", nil), `no entry for key "Absent"`)
}

// TestKubeletConfig decodes the configuration with the types of the kubelet, so that misspelt fields fail.
func TestKubeletConfig(t *testing.T) {
	values := map[string]any{"Port": 10250, "HealthzPort": 10248}
	for _, name := range []string{"ServingCert", "ServingKey", "ClientCA", "Endpoint", "CgroupRoot", "PodLogsDir", "VolumePluginDir"} {
		values[name] = "/" + strings.ToLower(name)
	}
	path := filepath.Join(t.TempDir(), "kubelet.yaml")
	require.NoError(t, writeConfig(path, kubeletConfig, values))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var config kubeletv1beta1.KubeletConfiguration
	require.NoError(t, yaml.UnmarshalStrict(content, &config))
	require.Equal(t, "127.0.0.1", config.Address)
	require.Equal(t, "/cgrouproot", config.CgroupRoot)
	require.Equal(t, "/clientca", config.Authentication.X509.ClientCAFile)
	require.False(t, *config.Authentication.Anonymous.Enabled, "only the API server may run programs in containers")
	require.False(t, *config.FailCgroupV1)
}

// unpack returns the contents of the files in an archive, by name.
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
