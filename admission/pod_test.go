// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

func podOf(scheduler string, entries ...corev1.PodResourceClaim) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: scheduler, ResourceClaims: entries}}
}

func TestPods(t *testing.T) {
	constrained := claimOf(t, asking(4))
	allocated := constrained.DeepCopy()
	allocated.Status.Allocation = &resourceapi.AllocationResult{}
	claims := map[string]*resourceapi.ResourceClaim{"constrained": constrained, "allocated": allocated, "plain": claimOf(t, "{}"),
		"preferring": claimOf(t, "config: ["+preferred("p", "1")+"]")}
	claim := func(name string) corev1.PodResourceClaim {
		return corev1.PodResourceClaim{Name: name, ResourceClaimName: &name}
	}
	template := func(name string) corev1.PodResourceClaim {
		return corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: &name}
	}
	warning := func(scheduler, of string) string {
		return fmt.Sprintf("spec.schedulerName: the scheduler %q does not support the CEL device constraint of %s, so the pod would never be scheduled; use celset-scheduler", scheduler, of)
	}
	bound := podOf("default-scheduler", claim("constrained"))
	bound.Spec.NodeName = "node"
	tests := map[string]struct {
		pod      *corev1.Pod
		options  Options
		warnings []string
		reads    int
	}{
		"our scheduler":   {pod: podOf("celset-scheduler", claim("constrained"))},
		"another of ours": {pod: podOf("gpu", claim("constrained")), options: Options{SchedulerNames: []string{"celset-scheduler", "gpu"}}},
		"no claims":       {pod: podOf("default-scheduler")},
		"on a node":       {pod: bound},
		"claim":           {pod: podOf("default-scheduler", claim("constrained")), warnings: []string{warning("default-scheduler", "ResourceClaim constrained")}, reads: 1},
		"no scheduler":    {pod: podOf("", claim("constrained")), warnings: []string{warning("default-scheduler", "ResourceClaim constrained")}, reads: 1},
		"template":        {pod: podOf("volcano", template("constrained")), warnings: []string{warning("volcano", "ResourceClaimTemplate constrained")}, reads: 1},
		"allocated":       {pod: podOf("default-scheduler", claim("allocated")), reads: 1},
		"plain":           {pod: podOf("default-scheduler", claim("plain"), template("plain")), reads: 2},
		"preference": {pod: podOf("default-scheduler", claim("preferring")), reads: 1, warnings: []string{
			`spec.schedulerName: the scheduler "default-scheduler" does not support the preference of ResourceClaim preferring and allocates any devices; use celset-scheduler`}},
		"unknown":             {pod: podOf("default-scheduler", claim("none"), template("none")), reads: 2},
		"neither":             {pod: podOf("default-scheduler", corev1.PodResourceClaim{Name: "a"}, corev1.PodResourceClaim{ResourceClaimName: ptr.To("")})},
		"once for one object": {pod: podOf("default-scheduler", claim("constrained"), claim("constrained")), warnings: []string{warning("default-scheduler", "ResourceClaim constrained")}, reads: 1},
	}
	many := podOf("default-scheduler")
	for i := range 1000 {
		many.Spec.ResourceClaims = append(many.Spec.ResourceClaims, claim(fmt.Sprintf("none-%d", i)))
	}
	tests["many claims"] = struct {
		pod      *corev1.Pod
		options  Options
		warnings []string
		reads    int
	}{pod: many, reads: maxClaims}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reads := 0
			got := newChecker(t, test.options).Pod(test.pod,
				func(name string) *resourceapi.ResourceClaim {
					reads++
					return claims[name]
				},
				func(name string) *resourceapi.ResourceClaimTemplate {
					reads++
					if claims[name] == nil {
						return nil
					}
					return templateOf(claims[name])
				})
			require.Equal(t, test.warnings, got)
			require.Equal(t, test.reads, reads)
		})
	}
}
