// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/celset/celset/internal/clusterstate"
)

// read reads text as a file.
func read(t *testing.T, text string) (*clusterstate.Objects, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return clusterstate.ReadFiles(resource.FilenameOptions{Filenames: []string{name}}, nil, "team")
}

const claimV1 = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: new}
spec:
  devices:
    requests:
    - name: one
      exactly: {deviceClassName: x, tolerations: [{key: k}]}
    - name: two
      firstAvailable: [{name: a, deviceClassName: x}, {name: b, deviceClassName: x, allocationMode: All}]
`

func TestFilesInAllVersions(t *testing.T) {
	objects, err := read(t, claimV1+`
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: old, namespace: other}
spec:
  devices:
    requests: [{name: one, deviceClassName: x, allocationMode: ExactCount, count: 3}]
---
apiVersion: resource.k8s.io/v1beta2
kind: DeviceClass
metadata: {name: x}
spec: {selectors: [{cel: {expression: "true"}}]}
---
# Not ours.
apiVersion: example.com/v1
kind: ResourceClaim
metadata: {name: foreign}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: node-1}}
- {apiVersion: v1, kind: Pod, metadata: {name: p}}
- {apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d, fromTheFuture: 1}}
- {apiVersion: resource.k8s.io/v1, kind: DeviceTaintRule, metadata: {name: r}, spec: {taint: {key: k, effect: NoSchedule}}}
- {apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t}, spec: {spec: {}}}
`)
	require.NoError(t, err)
	require.Len(t, objects.Claims, 2)
	require.Equal(t, "team", objects.Claims[0].Namespace)
	require.Equal(t, "other", objects.Claims[1].Namespace)
	require.EqualValues(t, 3, objects.Claims[1].Spec.Devices.Requests[0].Exactly.Count)
	require.Len(t, objects.Classes, 1)
	require.Len(t, objects.Nodes, 1)
	require.Len(t, objects.Pods, 1)
	require.Equal(t, "team", objects.Pods[0].Namespace)
	require.Len(t, objects.Slices, 1)
	require.Len(t, objects.TaintRules, 1)
	require.Len(t, objects.Templates, 1)
}

// Objects in files have the defaults that the API server would give them.
func TestDefaults(t *testing.T) {
	objects, err := read(t, claimV1)
	require.NoError(t, err)
	requests := objects.Claims[0].Spec.Devices.Requests
	require.Equal(t, resourceapi.DeviceAllocationModeExactCount, requests[0].Exactly.AllocationMode)
	require.EqualValues(t, 1, requests[0].Exactly.Count)
	require.Equal(t, resourceapi.DeviceTolerationOpEqual, requests[0].Exactly.Tolerations[0].Operator)
	require.EqualValues(t, 1, requests[1].FirstAvailable[0].Count)
	require.Zero(t, requests[1].FirstAvailable[1].Count)
}

func TestUnknownFieldsOfWhatUsersWrite(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"claim": {
			"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {device: {}}}",
			`objects.yaml: ResourceClaim c: strict decoding error: unknown field "spec.device"`,
		},
		"class": {
			"{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}, spec: {selector: []}}",
			`unknown field "spec.selector"`,
		},
		"the form of the KEP": {
			"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {constraints: [{cel: {expression: x}}]}}}",
			`use "kubectl celset convert"`,
		},
		"no YAML": {"{", "objects.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, test.text)
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestStandardInputAndDirectories(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(claimV1), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.json"), []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`), 0o600))
	stdin := strings.NewReader("{apiVersion: v1, kind: Pod, metadata: {name: p}}")
	objects, err := clusterstate.ReadFiles(resource.FilenameOptions{Filenames: []string{dir, "-"}}, stdin, "team")
	require.NoError(t, err)
	require.Len(t, objects.Claims, 1)
	require.Len(t, objects.Nodes, 1)
	require.Len(t, objects.Pods, 1)
	_, err = clusterstate.ReadFiles(resource.FilenameOptions{Filenames: []string{filepath.Join(dir, "none.yaml")}}, nil, "")
	require.ErrorContains(t, err, "none.yaml")
}

func TestClassesInDocuments(t *testing.T) {
	documents, err := clusterstate.ReadDocuments(resource.FilenameOptions{Filenames: []string{"-"}}, strings.NewReader(`
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: x}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {unknown: 1}}
`))
	require.NoError(t, err)
	require.Len(t, documents, 2)
	objects, err := clusterstate.ClassesIn(documents)
	require.NoError(t, err, "only classes are decoded")
	require.Len(t, objects.Classes, 1)
}
