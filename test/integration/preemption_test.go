// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/testing/minor"
)

// TestPreemptionForExtendedResources: pods with and without claims, in each other's way.
func TestPreemptionForExtendedResources(t *testing.T) {
	minor.Needs(t, kubefeatures.DRAExtendedResource)
	s := newScript(t, variant{profile: env.CelsetProfile})
	s.do("nodes 1", "ranks", "ring mla 4 -classless")
	l := s.lab
	driver := s.words["mla"]
	spec := env.ClassOf(driver)
	name := corev1.ResourceName("example.com/" + l.Namespace)
	spec.ExtendedResourceName = ptr.To(string(name))
	l.CreateClassWithSpec(t, driver, spec)
	asks := func(pod string, rank string, n int64) {
		object := (&arguments{s, []string{"-rank", rank}}).pod(pod)
		quantity := corev1.ResourceList{name: *resource.NewQuantity(n, resource.DecimalSI)}
		object.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: quantity, Limits: quantity}
		s.createAsIs(object)
		l.RequireRunning(t, pod)
	}
	asks("low", "1", 3)
	asks("job", "2", 2)
	s.do("gone low", "run set -rank 3 -want mla 4 {mla} -constrain row row(mla,4)", "running set", "gone job")
	require.Len(t, slices.Compact(l.DevicesOf(t, "set")), 4)
}
