// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package reading_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/clusterstate/reading"
)

// read returns the objects in a file with the given text.
func read(t *testing.T, text string) (*clusterstate.Objects, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "objects.yaml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return reading.Files(resource.FilenameOptions{Filenames: []string{name}}, nil, "team")
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

// TestDefaults checks that objects in files get the defaults that the API server would set.
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
			`convert it with "kubectl celset convert"`,
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
	objects, err := reading.Files(resource.FilenameOptions{Filenames: []string{dir, "-"}}, stdin, "team")
	require.NoError(t, err)
	require.Len(t, objects.Claims, 1)
	require.Len(t, objects.Nodes, 1)
	require.Len(t, objects.Pods, 1)
	_, err = reading.Files(resource.FilenameOptions{Filenames: []string{filepath.Join(dir, "none.yaml")}}, nil, "")
	require.ErrorContains(t, err, "none.yaml")
}

// TestJobs checks that a Job becomes its pods, and that a Job with a mistake is a warning.
func TestJobs(t *testing.T) {
	objects, err := read(t, `apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec: {parallelism: 2, completionMode: Indexed, template: {spec: {containers: [{name: c}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: b}
spec: {paralelism: 2}
`)
	require.NoError(t, err)
	require.Len(t, objects.Pods, 2)
	require.Equal(t, "a-1", objects.Pods[1].Name)
	require.Equal(t, "1", objects.Pods[1].Labels["batch.kubernetes.io/job-completion-index"])
	require.Len(t, objects.Warnings, 1)
	require.Contains(t, objects.Warnings[0], "the pods of Jobs are left out: ")
	require.Contains(t, objects.Warnings[0], `Job b: strict decoding error: unknown field "spec.paralelism"`)
}

func TestClassesInDocuments(t *testing.T) {
	documents, err := reading.Documents(resource.FilenameOptions{Filenames: []string{"-"}}, strings.NewReader(`
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

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func someObjects() []runtime.Object {
	return []runtime.Object{
		&resourceapi.ResourceClaim{ObjectMeta: named("a", "c")},
		&resourceapi.ResourceClaim{ObjectMeta: named("b", "c")},
		&resourceapi.ResourceClaimTemplate{ObjectMeta: named("a", "t")},
		&resourceapi.ResourceClaimTemplate{ObjectMeta: named("b", "t")},
		&resourceapi.DeviceClass{ObjectMeta: named("", "x")},
		&resourceapi.ResourceSlice{ObjectMeta: named("", "s")},
		&resourceapi.DeviceTaintRule{ObjectMeta: named("", "r")},
		&corev1.Node{ObjectMeta: named("", "node-1")},
		&corev1.Pod{ObjectMeta: named("a", "p")},
		&corev1.Pod{ObjectMeta: named("b", "p")},
	}
}

// TestReadCluster checks that claims of all namespaces are read, because any claim may have devices.
func TestReadCluster(t *testing.T) {
	client := fake.NewClientset(someObjects()...)
	objects, err := reading.Cluster(t.Context(), client, "a")
	require.NoError(t, err)
	require.Empty(t, objects.Warnings)
	require.Len(t, objects.Claims, 2)
	require.Len(t, objects.Templates, 1)
	require.Len(t, objects.Classes, 1)
	require.Len(t, objects.Slices, 1)
	require.Len(t, objects.TaintRules, 1)
	require.Len(t, objects.Nodes, 1)
	require.Len(t, objects.Pods, 1)
	for _, action := range client.Actions() {
		require.Equal(t, "list", action.GetVerb(), "nothing but lists")
	}
	objects, err = reading.Cluster(t.Context(), client, "")
	require.NoError(t, err)
	require.Len(t, objects.Pods, 2)
}

func TestReadClusterWithFewRights(t *testing.T) {
	forbid := func(resources ...string) *fake.Clientset {
		client := fake.NewClientset(someObjects()...)
		for _, resource := range resources {
			client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(resourceapi.Resource(resource), "", nil)
			})
		}
		return client
	}
	objects, err := reading.Cluster(t.Context(), forbid("nodes", "devicetaintrules"), "a")
	require.NoError(t, err)
	require.Len(t, objects.Warnings, 2)
	require.Len(t, objects.Slices, 1)
	_, err = reading.Cluster(t.Context(), forbid("resourceslices"), "a")
	require.ErrorContains(t, err, "list ResourceSlices: ")
}

// TestReadClusterWithRightsInANamespace checks that a user who may read only one namespace gets its objects and a warning.
func TestReadClusterWithRightsInANamespace(t *testing.T) {
	client := fake.NewClientset(someObjects()...)
	client.PrependReactor("list", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetNamespace() == "a" {
			return false, nil, nil
		}
		return true, nil, apierrors.NewForbidden(resourceapi.Resource("resourceclaims"), "", nil)
	})
	objects, err := reading.Cluster(t.Context(), client, "a")
	require.NoError(t, err)
	require.Equal(t, []string{"a/c"}, names(objects.Claims))
	require.Len(t, objects.Warnings, 1)
	require.Contains(t, objects.Warnings[0], "the claims of other namespaces can't be read, so their devices are shown as free: list ResourceClaims: ")
	for _, namespace := range []string{"", "b"} {
		_, err = reading.Cluster(t.Context(), client, namespace)
		require.ErrorContains(t, err, "list ResourceClaims: ", namespace)
	}
}

func names[T metav1.Object](objects []T) []string {
	var result []string
	for _, object := range objects {
		result = append(result, object.GetNamespace()+"/"+object.GetName())
	}
	return result
}

// TestMisspeltKinds checks that a mistake in a kind or version gives a warning with a suggestion.
func TestMisspeltKinds(t *testing.T) {
	for _, c := range []struct{ apiVersion, kind, near string }{
		{"resource.k8s.io/v1", "ResourceClam", `kind "ResourceClaim" in apiVersion "resource.k8s.io/v1"`},
		{"resource.k8s.io/v11", "ResourceClaim", `kind "ResourceClaim" in apiVersion "resource.k8s.io/v1"`},
		{"resources.k8s.io/v1", "DeviceClass", `kind "DeviceClass" in apiVersion "resource.k8s.io/v1"`},
		{"v1", "ResourceClaimTemplate", `kind "ResourceClaimTemplate" in apiVersion "resource.k8s.io/v1"`},
		{"v2", "Pod", `kind "Pod" in apiVersion "v1"`},
		{"scheduling.k8s.io/v1beta1", "PodGroups", `kind "PodGroup" in apiVersion "scheduling.k8s.io/v1beta1"`},
		{"scheduling.volcano.sh/v1beta1", "PodGroup", ""},
		{"apps/v1", "Deployment", ""},
		{"metrics.k8s.io/v1beta1", "NodeMetrics", ""},
	} {
		text := "apiVersion: " + c.apiVersion + "\nkind: " + c.kind + "\nmetadata: {name: x}\n"
		objects, err := reading.Files(resource.FilenameOptions{Filenames: []string{"-"}}, strings.NewReader(text), "ns")
		require.NoError(t, err)
		if c.near == "" {
			require.Empty(t, objects.Warnings, text)
			continue
		}
		require.Len(t, objects.Warnings, 1, text)
		require.Contains(t, objects.Warnings[0], "did you mean "+c.near+"?")
	}
}
