// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/topology"
)

// TestProfilesCompeteForOnePool has twice as many pods of three profiles as there
// are devices for. Whoever gets them: at no time two claims have a device, all of
// them are used, and what the first pods give back is enough for the others.
//
// It runs before the tests that run in parallel: it would take the time from them.
func TestProfilesCompeteForOnePool(t *testing.T) {
	const (
		nodes, perNode = 25, 20
		perPod         = 2
		fit            = nodes * perNode / perPod
		pods           = 2 * fit
	)
	l := newLab(t, "competition", nodes)
	ring := l.Ring(t, perNode)
	driver := ring.Drivers()[0]
	profiles := []string{env.StockProfile, env.CelsetProfile, allProfile}
	for _, profile := range profiles {
		v := variant{constrained: profile == env.CelsetProfile}
		l.createTemplate(t, profile, v.claim(env.Constrained("pair", env.Contiguous(driver, perPod)), env.Request("mla", driver, perPod))...)
	}

	l.createCompetitors(t, pods, profiles...)
	served := l.requireAllDevicesInUse(t, ring, fit)
	perProfile := map[string]int{}
	for _, claim := range served {
		perProfile[claim.Labels[profileLabel]]++
	}
	for _, profile := range profiles {
		require.NotZero(t, perProfile[profile], "claims of %s", profile)
	}

	l.deletePodsOf(t, served)
	others := l.requireAllDevicesInUse(t, ring, fit)
	require.Empty(t, sets.KeySet(served).Intersection(sets.KeySet(others)), "claims of deleted pods")

	l.deletePodsOf(t, others)
	env.Eventually(t, "claims go with their pods", func(ctx context.Context) (string, error) {
		claims, err := client().ResourceV1().ResourceClaims(l.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(claims.Items) > 0 {
			return "some are left", err
		}
		return "", nil
	})
	l.Run(t, "all-of-a-node", env.CelsetProfile, env.Request("mla", driver, perNode), env.Constrained("ring20", env.Contiguous(driver, perNode)))
	l.RequireRunning(t, "all-of-a-node")
	require.Len(t, l.DevicesOf(t, "all-of-a-node"), perNode)
}

// requireAllDevicesInUse waits until as many pods run as there are devices for, and
// returns the claims that have them. Each look at the claims is one at all of them
// at one time, so that no look may show a device twice.
func (l *lab) requireAllDevicesInUse(t *testing.T, ring topology.Topology, fit int) (served map[string]*resourceapi.ResourceClaim) {
	t.Helper()
	env.Eventually(t, "as many pods run as there are devices for", func(ctx context.Context) (string, error) {
		var users map[string]string
		served, users = l.usersOfDevices(t, ring)
		running, err := l.running(ctx)
		if err != nil || running != fit || len(served) != fit || len(users) != len(l.Nodes)*len(ring.Devices) {
			return fmt.Sprintf("%d of %d pods, %d claims, %d devices", running, fit, len(served), len(users)), err
		}
		return "", nil
	})
	return served
}

// deletePodsOf deletes the pods that use the claims.
func (l *lab) deletePodsOf(t *testing.T, claims map[string]*resourceapi.ResourceClaim) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(concurrentRequests)
	for _, claim := range claims {
		require.Len(t, claim.Status.ReservedFor, 1)
		group.Go(func() error {
			return client().CoreV1().Pods(l.Namespace).Delete(ctx, claim.Status.ReservedFor[0].Name, metav1.DeleteOptions{})
		})
	}
	require.NoError(t, group.Wait())
}

// createTemplate makes a template for the claims of a profile's pods, named like
// the profile.
func (l *lab) createTemplate(t *testing.T, profile string, parts ...env.Part) {
	t.Helper()
	_, err := client().ResourceV1().ResourceClaimTemplates(l.Namespace).Create(t.Context(), &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: profile},
		Spec: resourceapi.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{profileLabel: profile}},
			Spec:       env.Claim("", parts...).Spec,
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

const (
	// profileLabel is on claims of the pods of a profile.
	profileLabel = "celset.dev/profile"

	// concurrentRequests limits the requests in flight.
	concurrentRequests = 8
)

// createCompetitors creates n pods, of the profiles by turns and several at once.
func (l *lab) createCompetitors(t *testing.T, n int, profiles ...string) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(concurrentRequests)
	for i := range n {
		profile := profiles[i%len(profiles)]
		pod := env.Pod(fmt.Sprintf("%s-%d", profile, i), profile, "")
		pod.Spec.ResourceClaims[0].ResourceClaimName = nil
		pod.Spec.ResourceClaims[0].ResourceClaimTemplateName = &profile
		pod.Spec.NodeSelector = map[string]string{env.LabLabel: l.Namespace}
		group.Go(func() error {
			_, err := client().CoreV1().Pods(l.Namespace).Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, group.Wait())
}

func (l *lab) running(ctx context.Context) (int, error) {
	pods, err := client().CoreV1().Pods(l.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	running := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running, nil
}

// usersOfDevices returns the claims that have an allocation, by name, and the name
// of the claim that each device ("pool/device") is allocated to. It is an error if a
// device is in two claims or a set is not what its claim asks for.
func (l *lab) usersOfDevices(t *testing.T, ring topology.Topology) (served map[string]*resourceapi.ResourceClaim, users map[string]string) {
	t.Helper()
	claims, err := client().ResourceV1().ResourceClaims(l.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	served, users = map[string]*resourceapi.ResourceClaim{}, map[string]string{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Allocation == nil {
			continue
		}
		served[claim.Name] = claim
		for _, result := range claim.Status.Allocation.Devices.Results {
			device := result.Pool + "/" + result.Device
			require.NotContains(t, users, device, "allocated to %s and %s", users[device], claim.Name)
			users[device] = claim.Name
		}
		if claim.Labels[profileLabel] == env.CelsetProfile {
			require.True(t, ring.Contiguous(env.DeviceNames(claim)), "%s got %v", claim.Name, env.DeviceNames(claim))
		}
	}
	return served, users
}
