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

	"github.com/celset/celset/internal/topology"
)

// TestProfilesCompeteForOnePool has far more pods of both profiles than devices.
// Whoever gets them: each device goes to one claim, all of them are used, and in
// the end all come back.
func TestProfilesCompeteForOnePool(t *testing.T) {
	t.Parallel()
	const (
		nodes, perNode = 4, 8
		podsPerProfile = 30
		perPod         = 2
		fit            = nodes * perNode / perPod
	)
	l := newLab(t, "competition", nodes)
	ring := l.ring(t, perNode)
	driver := ring.Drivers()[0]
	l.createTemplate(t, stockProfile, request("mla", driver, perPod))
	l.createTemplate(t, celsetProfile, request("mla", driver, perPod), constrained("pair", contiguous(driver, perPod)))

	l.createCompetitors(t, podsPerProfile, stockProfile, celsetProfile)
	eventually(t, "as many pods run as there are devices for", func(ctx context.Context) (string, error) {
		running, err := l.running(ctx)
		require.LessOrEqual(t, running, fit)
		if err != nil || running < fit {
			return fmt.Sprintf("%d of %d", running, fit), err
		}
		return "", nil
	})
	users, perProfile := l.usersOfDevices(t, ring)
	require.Len(t, users, nodes*perNode, "all devices are in use")
	require.Equal(t, fit, perProfile[stockProfile]+perProfile[celsetProfile])
	require.NotZero(t, perProfile[stockProfile])
	require.NotZero(t, perProfile[celsetProfile])

	require.NoError(t, client().CoreV1().Pods(l.namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	eventually(t, "claims go with their pods", func(ctx context.Context) (string, error) {
		claims, err := client().ResourceV1().ResourceClaims(l.namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(claims.Items) > 0 {
			return "some are left", err
		}
		return "", nil
	})
	l.run(t, "all-of-a-node", celsetProfile, request("mla", driver, perNode), constrained("ring8", contiguous(driver, perNode)))
	l.requireRunning(t, "all-of-a-node")
	require.Len(t, l.devicesOf(t, "all-of-a-node"), perNode)
}

// createTemplate makes a template for the claims of a profile's pods, named like
// the profile.
func (l *lab) createTemplate(t *testing.T, profile string, parts ...part) {
	t.Helper()
	_, err := client().ResourceV1().ResourceClaimTemplates(l.namespace).Create(t.Context(), &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: profile},
		Spec: resourceapi.ResourceClaimTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{profileLabel: profile}},
			Spec:       claimOf("", parts...).Spec,
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// profileLabel is on claims of the pods of a profile.
const profileLabel = "celset.dev/profile"

// createCompetitors creates n pods of each profile, by turns and several at once.
func (l *lab) createCompetitors(t *testing.T, n int, profiles ...string) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for i := range n {
		for _, profile := range profiles {
			pod := podOf(fmt.Sprintf("%s-%d", profile, i), profile, "")
			pod.Spec.ResourceClaims[0].ResourceClaimName = nil
			pod.Spec.ResourceClaims[0].ResourceClaimTemplateName = &profile
			pod.Spec.NodeSelector = map[string]string{labLabel: l.namespace}
			group.Go(func() error {
				_, err := client().CoreV1().Pods(l.namespace).Create(ctx, pod, metav1.CreateOptions{})
				return err
			})
		}
	}
	require.NoError(t, group.Wait())
}

func (l *lab) running(ctx context.Context) (int, error) {
	pods, err := client().CoreV1().Pods(l.namespace).List(ctx, metav1.ListOptions{})
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

// usersOfDevices returns the claim that each device ("pool/device") is allocated
// to, and how many claims of each profile have an allocation. It is an error if
// a device is in two claims or a set is not what its claim asks for.
func (l *lab) usersOfDevices(t *testing.T, ring topology.Topology) (users map[string]string, perProfile map[string]int) {
	t.Helper()
	claims, err := client().ResourceV1().ResourceClaims(l.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	users, perProfile = map[string]string{}, map[string]int{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			device := result.Pool + "/" + result.Device
			require.NotContains(t, users, device, "allocated to %s and %s", users[device], claim.Name)
			users[device] = claim.Name
		}
		profile := claim.Labels[profileLabel]
		perProfile[profile]++
		if profile == celsetProfile {
			require.True(t, ring.Contiguous(deviceNames(claim)), "%s got %v", claim.Name, deviceNames(claim))
		}
	}
	return users, perProfile
}
