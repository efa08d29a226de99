// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/enrichment"
)

func nothing(*v1.Pod) {}

// waiting returns a pod of the handle's profile that waits for the claim of [claim].
func waiting(name string, edit func(*v1.Pod)) *v1.Pod {
	p := pod()
	p.Name, p.UID, p.Spec.SchedulerName = name, "", "celset-scheduler"
	edit(p)
	return p
}

// TestPodsWaitForDeviceAttributes checks that a constraint can read attributes of a DeviceAttributes object, that the pod that waits
// for them is tried again after the object was created, and that no other pod is.
func TestPodsWaitForDeviceAttributes(t *testing.T) {
	const adjacent = "devices.map(d, d.attributes['topology.celset.dev'].x).max() - devices.map(d, d.attributes['topology.celset.dev'].x).min() == 1"
	elsewhere := claim(1)
	elsewhere.Name, elsewhere.UID = "elsewhere", "elsewhere"
	elsewhere.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == 'other.example.com'"}}}
	objects := []runtime.Object{
		class(), slice(0, 1, 2), constrain(t, claim(2), "adjacent", adjacent), elsewhere,
		waiting("pod", nothing),
		waiting("bound", func(p *v1.Pod) { p.Spec.NodeName = nodeName }),
		waiting("deleted", func(p *v1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Now()) }),
		waiting("of-another-profile", func(p *v1.Pod) { p.Spec.SchedulerName = "default-scheduler" }),
		waiting("without-claims", func(p *v1.Pod) { p.Spec.ResourceClaims = nil }),
		waiting("of-a-group", func(p *v1.Pod) {
			p.Spec.ResourceClaims, p.Spec.SchedulingGroup = nil, &v1.PodSchedulingGroup{PodGroupName: ptr.To("group")}
		}),
		waiting("for-another-driver", func(p *v1.Pod) { p.Spec.ResourceClaims[0].ResourceClaimName = ptr.To("elsewhere") }),
	}
	ctx, h := newHandle(t, objects...)
	client, shared, measured := plugintest.NewAttributesClient(t), newShared(), newMetrics(t)
	var err error
	shared.enrichment, err = enrichment.New(ctx, enrichment.Config{
		Client: client, Slices: h.Manager.ResourceSlices(), Informers: h.Factory, Leads: shared.guard.Leads, Recorder: h.EventRecorder,
		Metrics: measured, Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	pl, err := newPlugin(ctx, nil, h, features(), true, measured, shared)
	require.NoError(t, err)
	h.Factory.Core().V1().Nodes().Informer()
	h.Start(ctx, t, objects...)
	for _, name := range []string{"claim", "elsewhere"} {
		c, err := pl.resolver.Manager.ResourceClaims().Get("default", name)
		require.NoError(t, err)
		_, _, err = pl.prepared.Of(ctx, []*resourceapi.ResourceClaim{c})
		require.NoError(t, err)
	}
	fits := func() (bool, string) {
		state := framework.NewCycleState()
		_, status := pl.PreFilter(ctx, state, pod(), nil)
		require.True(t, status.IsSuccess(), status)
		status = pl.Filter(ctx, state, pod(), node(nodeName))
		return status.IsSuccess(), status.Message()
	}
	isFit, why := fits()
	require.False(t, isFit)
	require.Contains(t, why, "topology.celset.dev")

	go shared.enrichment.Run(ctx)
	_, err = client.Resource(enrichment.Resource).Create(ctx, plugintest.Unstructured(t, plugintest.AttributesTable("a", map[string]int64{"mla-0": 7, "mla-1": 3, "mla-2": 8})), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(h.Activated()) >= 2 }, waitFor, tick)
	require.Equal(t, sets.New("default/pod", "default/of-a-group"), sets.New(h.Activated()...))
	isFit, why = fits()
	require.True(t, isFit, why)
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.True(t, pl.Filter(ctx, state, pod(), node(nodeName)).IsSuccess())
	require.True(t, pl.Reserve(ctx, state, pod(), nodeName).IsSuccess())
	var devices []string
	for _, result := range pl.resolver.Manager.ResourceClaims().GetPendingAllocation("claim").Devices.Results {
		devices = append(devices, result.Device)
	}
	require.Equal(t, []string{"mla-0", "mla-2"}, devices)
}
