// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const deployment = `# a comment is no object
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, args: [--port=1, --quiet]}, {name: other, args: [x]}]}}}
`

func TestKustomization(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	write("deployment.yaml", deployment)
	write("kustomization.yaml", "resources: [deployment.yaml]\nnamePrefix: my-\nconfigMapGenerator:\n- name: config\n  literals: [a=b]\n")
	objects, err := Kustomization(dir)
	require.NoError(t, err)
	require.Len(t, objects, 2)

	object, err := Find(objects, "Deployment", "my-web")
	require.NoError(t, err)
	args, err := Args(object)
	require.NoError(t, err)
	require.Equal(t, []string{"--port=1", "--quiet"}, args)

	config, err := Find(objects, "ConfigMap", "my-config")
	require.NoError(t, err)
	require.NotEqual(t, "my-config", config.GetName(), "a hash is appended")
	_, err = Args(config)
	require.ErrorContains(t, err, "has no containers")
	_, err = Find(objects, "Secret", "my-web")
	require.ErrorContains(t, err, "no Secret my-web among 2 objects")
}

func TestMistakesAreErrors(t *testing.T) {
	_, err := Kustomization(t.TempDir())
	require.ErrorContains(t, err, "kustomization")
	_, err = Decode([]byte("a: 1\n---\nb: [\n"))
	require.ErrorContains(t, err, "document 2")
}
