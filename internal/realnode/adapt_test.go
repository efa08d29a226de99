// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
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

// TestKubeletConfig has the kubelet's own types read it.
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
