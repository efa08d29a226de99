// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBundleToCreate(t *testing.T) {
	for command, want := range map[string]string{
		"--root /r --log /l create --bundle /b --pid-file /p id": "/b",
		"create --bundle=/b id":                                  "/b",
		"run -b /b id":                                           "/b",
		"create id":                                              ".",
		"--root /r start id":                                     "",
		"delete --force id":                                      "",
		"--version":                                              "",
		"":                                                       "",
		"--root /r state --bundle":                               "",
	} {
		bundle, creates := bundleToCreate(strings.Fields(command))
		require.Equal(t, want, bundle, command)
		require.Equal(t, want != "", creates, command)
	}
}

func TestRemoveSeccomp(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"filter": {
			config: `{"ociVersion": "1.2.0", "linux": {"seccomp": {"defaultAction": "SCMP_ACT_ERRNO"}, "resources": {"cpu": {"shares": 18446744073709551615}}}, "process": {"args": ["<a>"]}}`,
			want:   `{"ociVersion": "1.2.0", "linux": {"resources": {"cpu": {"shares": 18446744073709551615}}}, "process": {"args": ["<a>"]}}`,
		},
		"no filter": {config: `{"linux": {"resources": {}}}`, want: `{"linux": {"resources": {}}}`},
		"no linux":  {config: `{"windows": {}}`, want: `{"windows": {}}`},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "config.json")
			require.NoError(t, os.WriteFile(path, []byte(test.config), 0o600))
			require.NoError(t, removeSeccomp(path))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.JSONEq(t, test.want, string(got))
			if strings.Contains(test.want, "1844") {
				require.Contains(t, string(got), "18446744073709551615", "numbers are not rounded")
			}
		})
	}
	path := filepath.Join(t.TempDir(), "config.json")
	require.ErrorContains(t, removeSeccomp(path), "no such file")
	require.NoError(t, os.WriteFile(path, []byte(`{"linux": 3}`), 0o600))
	require.ErrorContains(t, removeSeccomp(path), path+": json: cannot unmarshal")
}

func TestRunWithoutRunc(t *testing.T) {
	require.ErrorContains(t, run([]string{"--version"}), "execute "+filepath.Dir(os.Args[0]))
}
