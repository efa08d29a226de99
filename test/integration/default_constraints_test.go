// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// TestDefaultConstraintsHoldWithoutAClaim tests a class that requires connected devices by default. Two devices of a ring of
// eight are in use. Pods request four devices by a claim without a constraint, and as an extended resource, by its explicit and
// its implicit name. They must get connected devices, except in the profile with upstream's allocator, which ignores default
// constraints.
func TestDefaultConstraintsHoldWithoutAClaim(t *testing.T) {
	forEachVariant(t, "default", 1, func(t *testing.T, l *lab, v variant) {
		driver, name := l.ringByDefault(t, 8)
		want := []string{"mla-2", "mla-3", "mla-4", "mla-5"}
		if v.profile == env.StockProfile {
			want = []string{"mla-0", "mla-2", "mla-3", "mla-4"}
		}
		l.CreateClaim(t, "plain", env.Request("mla", driver, 4))
		pods := []*corev1.Pod{env.Pod("claim", v.profile, "plain")}
		if minor.Has(kubefeatures.DRAExtendedResource) {
			pods = append(pods, l.podWithExtended("explicit", v.profile, name, 4),
				l.podWithExtended("implicit", v.profile, corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix+driver), 4))
		}
		for _, pod := range pods {
			pod.Spec.NodeSelector = map[string]string{env.LabLabel: l.Namespace}
			l.CreatePodAsIs(t, pod)
			l.RequireRunning(t, pod.Name)
			claim := "plain"
			if status := l.Pod(t, pod.Name).Status.ExtendedResourceClaimStatus; status != nil {
				claim = status.ResourceClaimName
			}
			require.ElementsMatch(t, want, env.DeviceNames(l.Claim(t, claim)), pod.Name)
			if pod.Name == "explicit" {
				l.CreatePodAsIs(t, l.podWithExtended("one-more", v.profile, name, 2))
				if v.profile == env.StockProfile {
					l.RequireRunning(t, "one-more")
				} else {
					l.RequireRefused(t, "one-more", "nearest miss", "constraint row of DeviceClass "+driver+" spec.config[0] (default)")
				}
				l.DeletePod(t, "one-more")
				env.Eventually(t, "the pod ends", func(ctx context.Context) (string, error) { return l.exists(ctx, "one-more") })
			}
			l.DeletePod(t, pod.Name)
			l.RequireFreed(t, claim)
		}
	})
}

// ringByDefault publishes a ring on the n-th node, with mla-1 and mla-6 in use. Its class has an extended resource, and
// requires by default that the devices of a claim are in a row.
func (l *lab) ringByDefault(t *testing.T, n int) (driver string, name corev1.ResourceName) {
	t.Helper()
	family := l.Family("mla")
	ring, err := topology.NewRing(family, n)
	require.NoError(t, err)
	l.Publish(t, ring, l.Nodes...)
	raw, err := json.Marshal(&v1alpha1.CELDeviceConstraint{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:     "row", Enforcement: v1alpha1.EnforcementAlways,
		Expression: strings.Replace(env.Contiguous(family.Driver, 0), "== -1", "== size(devices) - 1", 1),
	})
	require.NoError(t, err)
	spec := env.ClassOf(family.Driver)
	name = corev1.ResourceName(family.Driver + "/ring")
	extended := string(name)
	spec.ExtendedResourceName = &extended
	spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
		Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw}},
	}}}
	l.CreateClassWithSpec(t, family.Driver, spec)
	l.Occupy(t, l.Nodes[0], ring, "mla-1")
	l.Occupy(t, l.Nodes[0], ring, "mla-6")
	return family.Driver, name
}
