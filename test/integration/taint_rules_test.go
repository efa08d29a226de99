// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// unhealthy is the key of the taints in these tests.
const unhealthy = "example.com/unhealthy"

// TestDeviceTaintRulesKeepPodsAway taints one of four devices with a DeviceTaintRule (KEP-5055). Pods without a toleration must
// not get it.
func TestDeviceTaintRulesKeepPodsAway(t *testing.T) {
	minor.Needs(t, kubefeatures.DRADeviceTaintRules)
	forEachVariant(t, "tainted", 1, func(t *testing.T, l *lab, v variant) {
		ring := l.Ring(t, 4)
		driver := ring.Drivers()[0]
		rule := l.taint(t, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintSelector{
			Driver: &driver, Pool: &l.Nodes[0], Device: &ring.Devices[1].Name,
		})
		l.requireTainted(t, ring.Devices[1])
		pair := env.Constrained("pair", env.Contiguous(driver, 2))
		two := v.claim(pair, env.Request("mla", driver, 2))

		l.Run(t, "tolerates", v.profile, v.claim(pair, tolerating("mla", driver, 2, resourceapi.DeviceTaintEffectNoSchedule))...)
		l.RequireRunning(t, "tolerates")
		require.Equal(t, []string{"mla-0", "mla-1"}, l.DevicesOf(t, "tolerates"))
		require.Empty(t, cmp.Diff(tolerations(resourceapi.DeviceTaintEffectNoSchedule),
			l.Claim(t, "tolerates").Status.Allocation.Devices.Results[0].Tolerations))
		l.DeletePod(t, "tolerates")
		l.RequireFreed(t, "tolerates")

		l.Run(t, "avoids", v.profile, two...)
		l.RequireRunning(t, "avoids")
		require.Equal(t, v.either([]string{"mla-0", "mla-2"}, []string{"mla-2", "mla-3"}), l.DevicesOf(t, "avoids"))

		l.Run(t, "waits", v.profile, two...)
		l.RequireRefused(t, "waits")
		require.NoError(t, client().ResourceV1().DeviceTaintRules().Delete(t.Context(), rule, metav1.DeleteOptions{}))
		l.RequireRunning(t, "waits")
		require.Equal(t, v.either([]string{"mla-1", "mla-3"}, []string{"mla-0", "mla-1"}), l.DevicesOf(t, "waits"))
	})
}

// TestDeviceTaintRulesEvictPods taints all devices of a driver with a DeviceTaintRule. Running pods without a toleration must
// be evicted.
func TestDeviceTaintRulesEvictPods(t *testing.T) {
	minor.Needs(t, kubefeatures.DRADeviceTaintRules)
	forEachVariant(t, "evicted", 1, func(t *testing.T, l *lab, v variant) {
		ring := l.Ring(t, 6)
		driver := ring.Drivers()[0]
		pair := env.Constrained("pair", env.Contiguous(driver, 2))
		two := v.claim(pair, env.Request("mla", driver, 2))
		l.Run(t, "sensitive", v.profile, two...)
		l.RequireRunning(t, "sensitive")
		l.Run(t, "tolerates", v.profile, v.claim(pair, tolerating("mla", driver, 2, resourceapi.DeviceTaintEffectNoExecute))...)
		l.RequireRunning(t, "tolerates")

		rule := l.taint(t, resourceapi.DeviceTaintEffectNoExecute, resourceapi.DeviceTaintSelector{Driver: &driver})
		env.Eventually(t, "the pod is evicted", func(ctx context.Context) (string, error) { return l.exists(ctx, "sensitive") })
		l.RequireFreed(t, "sensitive")
		l.requireTainted(t, ring.Devices[5])
		l.Run(t, "waits", v.profile, two...)
		l.RequireRefused(t, "waits")
		if v.constrained {
			// The messages of the scheduler and of explain must name the same rule.
			why := "devices that match have taints that the claims don't tolerate: " + unhealthy + "=:NoExecute of DeviceTaintRule " + rule
			l.RequireRefused(t, "waits", why)
			l.AwaitEvent(t, l.Pod(t, "waits"), "FailedScheduling", why)
			var stdout bytes.Buffer
			code := cli.Run(t.Context(), []string{"explain", "pod/waits", "--kubeconfig=" + cluster.Kubeconfig(), "--namespace=" + l.Namespace},
				genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &stdout, ErrOut: t.Output()})
			require.Equal(t, cli.ExitNegative, code)
			require.Contains(t, stdout.String(), why)
		}
		require.Equal(t, corev1.PodRunning, l.Pod(t, "tolerates").Status.Phase)

		require.NoError(t, client().ResourceV1().DeviceTaintRules().Delete(t.Context(), rule, metav1.DeleteOptions{}))
		l.RequireRunning(t, "waits", "tolerates")
		require.Equal(t, []string{"mla-0", "mla-1"}, l.DevicesOf(t, "waits"))
	})
}

// taint creates a DeviceTaintRule and returns its name.
func (l *lab) taint(t *testing.T, effect resourceapi.DeviceTaintEffect, devices resourceapi.DeviceTaintSelector) string {
	t.Helper()
	rule, err := client().ResourceV1().DeviceTaintRules().Create(t.Context(), &resourceapi.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: l.Namespace},
		Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &devices,
			Taint:          resourceapi.DeviceTaint{Key: unhealthy, Effect: effect},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	env.CleanUp(t, func(ctx context.Context) error {
		return client().ResourceV1().DeviceTaintRules().Delete(ctx, rule.Name, metav1.DeleteOptions{})
	})
	return rule.Name
}

// requireTainted waits until the scheduler has seen the taint of a device. The scheduler may see a pod before a rule that was
// created earlier. So requireTainted creates pods that request the device until one is rejected. They request admin access, so
// that the taint is the only possible reason even if the device is in use.
func (l *lab) requireTainted(t *testing.T, device topology.Device) {
	t.Helper()
	for i := 0; ; i++ {
		name := fmt.Sprintf("probe-%d", i)
		l.Run(t, name, env.StockProfile, env.One(device), env.WithAdminAccess)
		refused := false
		l.EventuallyPod(t, name, "running or refused", func(_ context.Context, pod *corev1.Pod) (bool, error) {
			refused = env.IsRefused(pod)
			return refused || pod.Status.Phase == corev1.PodRunning, nil
		})
		l.DeletePod(t, name)
		if refused {
			return
		}
	}
}

// tolerating requests count devices. It tolerates the taints of these tests.
func tolerating(name, class string, count int64, effect resourceapi.DeviceTaintEffect) env.Part {
	return env.Exactly(name, resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count, Tolerations: tolerations(effect),
	})
}

func tolerations(effect resourceapi.DeviceTaintEffect) []resourceapi.DeviceToleration {
	return []resourceapi.DeviceToleration{{Key: unhealthy, Operator: resourceapi.DeviceTolerationOpExists, Effect: effect}}
}

// exists returns a text as long as the pod exists, and "" when it is gone.
func (l *lab) exists(ctx context.Context, pod string) (string, error) {
	_, err := client().CoreV1().Pods(l.Namespace).Get(ctx, pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	return "pod " + pod + " exists", err
}
