// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const applyManifest = `# A comment alone is no object.
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: apply}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: apply}
data: {key: value}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: apply, namespace: kube-system}
`

func testApply(t *testing.T, cp *ControlPlane) {
	configMaps := cp.Client().CoreV1().ConfigMaps

	applied, err := Apply(t.Context(), cp.RESTConfig(), []byte(applyManifest), ApplyOptions{DryRun: true})
	require.NoError(t, err)
	require.Len(t, applied, 3)
	_, err = configMaps("default").Get(t.Context(), "apply", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a dry run stores nothing: %v", err)

	for range 2 { // applying again changes nothing
		_, err = Apply(t.Context(), cp.RESTConfig(), []byte(applyManifest), ApplyOptions{})
		require.NoError(t, err)
	}
	_, err = cp.Client().ResourceV1().DeviceClasses().Get(t.Context(), "apply", metav1.GetOptions{})
	require.NoError(t, err)
	stored, err := configMaps("default").Get(t.Context(), "apply", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"key": "value"}, stored.Data)
	_, err = configMaps("kube-system").Get(t.Context(), "apply", metav1.GetOptions{})
	require.NoError(t, err)

	for manifest, want := range map[string]string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: wrong}\nfield: 1": "ConfigMap wrong",
		"apiVersion: v2\nkind: Unknown\nmetadata: {name: wrong}":             "Unknown wrong",
		"{": "document 1 of the manifest",
	} {
		_, err := Apply(t.Context(), cp.RESTConfig(), []byte(manifest), ApplyOptions{})
		require.ErrorContains(t, err, want)
	}
}
