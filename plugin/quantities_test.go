// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/celset/celset/plugin/metrics"
)

// TestAmountsOutOfRangeAreNotUsed: a scheduler computes nothing with them, a claim that asks for them fits nowhere, and
// a claim that does not gets the device. With such an amount the evaluation would not end.
func TestAmountsOutOfRangeAreNotUsed(t *testing.T) {
	for name, args := range map[string]string{"ours": "", "upstream's allocator": `{"allocator":"Upstream"}`} {
		t.Run(name, func(t *testing.T) {
			published := slice(0, 1)
			published.Spec.Devices[0].Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
				"m": {Value: resource.MustParse("1e2000000000")}, "n": {Value: resource.MustParse("2")},
			}
			for expression, fits := range map[string]bool{
				"has(device.capacity['mla.example.com'].m) && device.capacity['mla.example.com'].m.isGreaterThan(quantity('1'))": false,
				"has(device.capacity['mla.example.com'].n) && device.capacity['mla.example.com'].n.isGreaterThan(quantity('1'))": true,
			} {
				registry := compbase.NewKubeRegistry()
				measured, err := metrics.New(registry, time.Now)
				require.NoError(t, err)
				objects := []*resourceapi.ResourceClaim{selecting(claim(1), expression)}
				ctx, h := newHandle(t, class(), published.DeepCopy(), objects[0])
				recorder := events.NewFakeRecorder(10)
				require.NoError(t, limitQuantities(h.factory, func() events.EventRecorderLogger { return recorder }, measured))
				pl, err := newPlugin(ctx, upstreamArgsOrNone(args), h, features(), true, measured, newShared())
				require.NoError(t, err)
				h.start(ctx, t, class(), objects[0])
				require.Equal(t, "Warning AmountsOutOfRange Not used, because an amount is beyond those of an int64 in milli- to exa-units: capacity m of device mla-0", <-recorder.Events)
				state := framework.NewCycleState()
				_, status := pl.PreFilter(ctx, state, pod(), nil)
				require.True(t, status.IsSuccess(), "%v", status)
				require.Equal(t, fits, pl.Filter(ctx, state, pod(), node(nodeName)).IsSuccess(), expression)
			}
		})
	}
	asking := claim(1)
	asking.Spec.Devices.Requests[0].Exactly.Capacity = &resourceapi.CapacityRequirements{
		Requests: map[resourceapi.QualifiedName]resource.Quantity{"m": resource.MustParse("1e2000000000")},
	}
	ctx, pl := start(t, true, class(), slice(0), asking)
	_, status := pl.PreFilter(ctx, framework.NewCycleState(), pod(), nil)
	require.Contains(t, status.Message(), "claim default/claim, request mla: the amount of capacity m is out of range")
}

func upstreamArgsOrNone(raw string) runtime.Object {
	if raw == "" {
		return nil
	}
	return &runtime.Unknown{Raw: []byte(raw)}
}
