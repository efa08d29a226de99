// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package extended_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

func container(counts ...int64) v1.Container {
	c := v1.Container{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("1")}}}
	for i, n := range counts {
		if n > 0 {
			c.Resources.Requests[[]v1.ResourceName{"example.com/gpu", "example.com/nic"}[i]] = *resource.NewQuantity(n, resource.DecimalSI)
		}
	}
	return c
}

func sidecar(counts ...int64) v1.Container {
	c := container(counts...)
	c.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	return c
}

// TestClaim checks that the requests equal the requests of createRequestsAndMappings in kube-scheduler. The name of a request
// contains the index of the container and the index of the resource after cpu.
func TestClaim(t *testing.T) {
	type list = []v1.Container
	type counts = map[string]int64
	for name, test := range map[string]struct {
		init, main list
		requests   counts
		containers string
	}{
		"main":                    {nil, list{container(4)}, counts{"container-0-request-1": 4}, ""},
		"reuses one":              {list{container(2)}, list{container(2)}, counts{"container-1-request-1": 2}, ""},
		"reuses all":              {list{container(2)}, list{container(1), container(1)}, counts{"container-1-request-1": 1, "container-2-request-1": 1}, `[["container-1-request-1"],["container-2-request-1"],["container-1-request-1","container-2-request-1"]]`},
		"needs more":              {list{container(4)}, list{container(2)}, counts{"container-0-request-1": 2, "container-1-request-1": 2}, `[["container-1-request-1"],["container-0-request-1","container-1-request-1"]]`},
		"shares what is missing":  {list{container(3), container(5)}, list{container(2)}, counts{"container-1-request-1": 3, "container-2-request-1": 2}, `[["container-2-request-1"],["container-1-request-1","container-2-request-1"]]`},
		"alone":                   {list{container(3)}, list{container()}, counts{"container-0-request-1": 3}, ""},
		"sidecar before":          {list{sidecar(1), container(2)}, list{container(1)}, counts{"container-0-request-1": 1, "container-1-request-1": 1, "container-2-request-1": 1}, `[["container-0-request-1"],["container-2-request-1"],["container-1-request-1","container-2-request-1"]]`},
		"sidecar after":           {list{container(2), sidecar(1)}, list{container(1)}, counts{"container-1-request-1": 1, "container-2-request-1": 1}, `[["container-1-request-1"],["container-2-request-1"],["container-1-request-1","container-2-request-1"]]`},
		"resources by themselves": {list{container(2, 1)}, list{container(1, 1)}, counts{"container-0-request-1": 1, "container-1-request-1": 1, "container-1-request-2": 1}, `[["container-1-request-1"],["container-1-request-2"],["container-0-request-1","container-1-request-1"]]`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1.PodSpec{InitContainers: test.init, Containers: test.main}}
			classOf := func(name v1.ResourceName) *resourceapi.DeviceClass {
				if name == "cpu" {
					return nil
				}
				return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: string(name)}}
			}
			require.True(t, extended.Wants(pod, classOf))
			require.False(t, extended.Wants(pod, func(v1.ResourceName) *resourceapi.DeviceClass { return nil }))
			claim := extended.Claim(pod, classOf)
			got := counts{}
			for _, r := range claim.Spec.Devices.Requests {
				got[r.Name] = r.Exactly.Count
			}
			require.Equal(t, test.requests, got)
			require.Equal(t, test.containers, v1alpha1.ContainersOf(claim))
		})
	}
}
