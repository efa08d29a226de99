// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

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
