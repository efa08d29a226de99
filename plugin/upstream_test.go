// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// upstreamOnly are the arguments of a profile in which upstream's allocator serves all pods.
func upstreamOnly() runtime.Object { return &runtime.Unknown{Raw: []byte(`{"allocator":"Upstream"}`)} }

// TestUpstreamIgnoresConstraints: whether a constraint is right, wrong or nowhere defined and
// whether the gate is on, it is what it is in a stock scheduler, a matchAttribute that no
// device has.
func TestUpstreamIgnoresConstraints(t *testing.T) {
	for name, c := range map[string]*resourceapi.ResourceClaim{
		"can be satisfied": constrain(t, claim(2), "ring2", ring2),
		"does not compile": constrain(t, claim(2), "wrong", "devices.size("),
		"not defined":      reference(claim(2), "ring2"),
	} {
		for _, enabled := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				a := startAdmissionWith(t, upstreamOnly(), enabled, class(), slice(0, 2, 3), c)
				require.Nil(t, a.cache)
				state := a.admit(t)
				require.IsType(t, &limitedAllocator{}, usedAllocator(t, a.DynamicResourcesCEL, state))
				status := a.Filter(a.ctx, state, pod(), node(nodeName))
				require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
				require.Equal(t, "cannot allocate all claims", status.Message())
				require.Empty(t, fail(a.ctx, t, a.DynamicResourcesCEL, nodeName).Message(), "there is nothing to explain")
				require.Empty(t, cmp.Diff(map[string]float64{"claims cel pending": 1}, shown(t, a.registry)))
			})
		}
	}
}

func TestUpstreamAllocatesOthers(t *testing.T) {
	a := startAdmissionWith(t, upstreamOnly(), true, class(), slice(0, 2, 3), claim(3))
	state := a.admit(t)
	require.True(t, a.Filter(a.ctx, state, pod(), node(nodeName)).IsSuccess())
	require.True(t, a.Reserve(a.ctx, state, pod(), nodeName).IsSuccess())
}

// TestUpstreamIsGuarded: what a tenant writes into a claim is limited there, too.
func TestUpstreamIsGuarded(t *testing.T) {
	endlessly := claim(2)
	endlessly.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{
		{CEL: &resourceapi.CELDeviceSelector{Expression: "quantity('1e2000000000').isGreaterThan(quantity('1'))"}},
	}
	a := startAdmissionWith(t, upstreamOnly(), true, class(), slice(0, 2, 3), endlessly)
	require.Contains(t, a.refuse(t), "claim default/claim, request mla: selector #0: ")
	a.requireRefusals(t, "invalid_selector", 1)

	// With or without a constraint, since that is upstream's business.
	for _, c := range []*resourceapi.ResourceClaim{claim(2), constrain(t, claim(2), "ring2", ring2)} {
		a = startAdmissionWith(t, upstreamOnly(), true, class(), slice(0, 2, 3), c)
		state := a.admit(t)
		usedAllocator(t, a.DynamicResourcesCEL, state).(*limitedAllocator).Allocator = endless{}
		ended := make(chan *fwk.Status)
		go func() { ended <- a.Filter(a.ctx, state, pod(), node(nodeName)) }()
		a.pass(time.Second)
		a.guard.Look()
		status := <-ended
		require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
		require.Contains(t, status.Message(), "not looked at")
		require.Contains(t, a.refuse(t), " 1 times in a row")
		a.requireRefusals(t, "back_off", 1)
	}
}

// TestUpstreamSkipsPodsWithoutClaims, as upstream's plugin does.
func TestUpstreamSkipsPodsWithoutClaims(t *testing.T) {
	ctx, h := newHandle(t)
	pl, err := newPlugin(ctx, upstreamOnly(), h, features(), true, newMetrics(t), newShared())
	require.NoError(t, err)
	_, status := pl.PreFilter(ctx, framework.NewCycleState(), &v1.Pod{}, nil)
	require.True(t, status.IsSkip())
}
