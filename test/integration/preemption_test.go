// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// TestPreemptionForExtendedResources checks that pods with claims and pods with extended resources can preempt each other.
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

// countingProfile is the only profile of a scheduler that counts free sets at the smallest allowed interval.
const countingProfile = "celset-counting"

// TestSetsOfDevicesAreCounted checks the metrics for two nodes of eight devices, where a claim waits for all devices of a node.
// The first allocated device on a node reduces the number of free sets by one. Further devices on the same node don't.
func TestSetsOfDevicesAreCounted(t *testing.T) {
	t.Parallel()
	l := newLab(t, "counted", 2)
	driver := l.Ring(t, 8).Drivers()[0]
	// The metrics contain only the first classes by name, so the name begins with "a.".
	class := "a." + driver
	index := "attributes['" + driver + "'].index / devices.size()"
	l.CreateNamedClass(t, class, driver, env.Definition("block", "devices.all(d, d."+index+" == devices[0]."+index+")"))
	l.CreateClaim(t, "waits", env.Request("mla", class, 8), env.Refer("block"))
	scheduler := startScheduler(t, countingProfile, celsetConfig(t, countingProfile, "{fragmentationInterval: 1s}"))
	requireSets := func(now, packed, idle float64) {
		t.Helper()
		want := fmt.Sprint("now ", now, ", packed ", packed, ", idle ", idle)
		env.Eventually(t, want, func(context.Context) (string, error) {
			_, values := scrape(t, scheduler)
			shape := class + " block 8"
			sets := func(state string) float64 { return values["celset_scheduler_device_sets "+shape+" "+state] }
			got := fmt.Sprint("now ", sets("now"), ", packed ", sets("packed"), ", idle ", sets("idle"))
			if asked := values["celset_scheduler_device_set_claims "+shape]; got != want || asked != 1 {
				return fmt.Sprintf("%s, asked by %v", got, asked), nil
			}
			return "", nil
		})
	}
	requireSets(2, 2, 2)

	for i, node := range l.Nodes {
		name := fmt.Sprint("single-", i)
		l.CreateClaim(t, name, env.Request("mla", driver, 1))
		l.CreatePodOn(t, node, name, countingProfile, name)
		l.RequireRunning(t, name)
	}
	requireSets(0, 1, 2)

	l.DeletePod(t, "single-0")
	requireSets(1, 1, 2)
}
