// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"k8s.io/utils/ptr"
)

const extendedResource v1.ResourceName = "example.com/mla"

// held gives the claim a device.
func held(c *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	c.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "mla", Driver: driver, Pool: nodeName, Device: deviceName(0)}},
	}}
	return c
}

func TestPodsAreTriedAgainWhenDevicesInFlightAreFree(t *testing.T) {
	extendedClass := class()
	extendedClass.Spec.ExtendedResourceName = ptr.To(string(extendedResource))
	generated, waitsForItsClaim, extended, plain := pod(), pod(), pod(), pod()
	waitsForItsClaim.Spec.ResourceClaims[0] = v1.PodResourceClaim{Name: "mla", ResourceClaimTemplateName: ptr.To("template")}
	generated.Spec.ResourceClaims[0] = waitsForItsClaim.Spec.ResourceClaims[0]
	generated.Status.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "mla", ResourceClaimName: ptr.To("claim")}}
	extended.Spec.ResourceClaims = nil
	extended.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), extendedResource: resource.MustParse("1")},
	}}}
	named := extended.DeepCopy()
	named.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "claim"}
	plain.Spec.ResourceClaims = nil

	for name, test := range map[string]struct {
		claims []runtime.Object
		gone   any
		want   fwk.QueueingHint
	}{
		"the claim has no devices":                  {[]runtime.Object{claim(1)}, pod(), fwk.Queue},
		"the claim is gone":                         {nil, pod(), fwk.Queue},
		"the claim has devices":                     {[]runtime.Object{held(claim(1))}, pod(), fwk.QueueSkip},
		"the claim from a template is gone":         {nil, generated, fwk.Queue},
		"the claim from a template has devices":     {[]runtime.Object{held(claim(1))}, generated, fwk.QueueSkip},
		"the claim from a template was never there": {nil, waitsForItsClaim, fwk.QueueSkip},
		"extended resources, not named":             {nil, extended, fwk.Queue},
		"extended resources, gone":                  {nil, named, fwk.Queue},
		"extended resources, has devices":           {[]runtime.Object{held(claim(1))}, named, fwk.QueueSkip},
		"no claims":                                 {nil, plain, fwk.QueueSkip},
		"nobody knows what is gone":                 {nil, cache.DeletedFinalStateUnknown{}, fwk.Queue},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append([]runtime.Object{extendedClass}, test.claims...)
			ctx, h := newHandle(t, objects...)
			pl, err := newPlugin(ctx, nil, h, features(), true, newMetrics(t), newShared())
			require.NoError(t, err)
			h.start(ctx, t, objects...)

			events, err := pl.EventsToRegister(ctx)
			require.NoError(t, err)
			event := events[len(events)-1]
			require.Equal(t, fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, event.Event)
			hint, err := event.QueueingHintFn(klog.FromContext(ctx), pod(), test.gone, nil)
			require.NoError(t, err)
			require.Equal(t, test.want, hint)
			considered, err := event.PreQueueingHintFn(klog.FromContext(ctx), test.gone, nil)
			require.NoError(t, err)
			require.Equal(t, fwk.PreQueueingHintResult{AllPods: test.want == fwk.Queue}, considered)
		})
	}
}

// The claim that was made for extended resources is waited for as long as its pod lives.
func TestNobodyWaitsForTheClaimOfAPodThatIsGone(t *testing.T) {
	alive, gone, again := pod(), pod(), pod()
	gone.Name = "gone"
	again.UID = "again" // of the name of a pod that lives
	unowned := leftover(alive)
	unowned.OwnerReferences = nil
	known := leftover(alive)
	known.Name = "known"
	known.ResourceVersion = "1"
	ctx, h := newHandle(t, alive, known)
	pl, err := newPlugin(ctx, nil, h, features(), true, newMetrics(t), newShared())
	require.NoError(t, err)
	h.start(ctx, t, alive, known)

	claims := pl.watched.SharedDRAManager().ResourceClaims()
	require.NoError(t, claims.AssumeClaimAfterAPICall(known))
	require.ErrorIs(t, claims.AssumeClaimAfterAPICall(leftover(alive)), assumecache.ErrNotFound)
	require.ErrorIs(t, claims.AssumeClaimAfterAPICall(unowned), assumecache.ErrNotFound)
	for _, owner := range []metav1.Object{gone, again} {
		claim := leftover(owner.(*v1.Pod))
		err := claims.AssumeClaimAfterAPICall(claim)
		require.EqualError(t, err, "pod of claim default/"+claim.Name+" got deleted")
		require.NotErrorIs(t, err, assumecache.ErrNotFound)
	}
}
