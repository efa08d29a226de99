// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
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
