// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/plugin/observe"
)

// classByDefault returns a class for an extended resource with a default constraint for all its requests.
func classByDefault(expression string) *resourceapi.DeviceClass {
	c := class()
	c.Spec.ExtendedResourceName = ptr.To(string(extendedResource))
	c.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
		Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: []byte(
			`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "ring2", "enforcement": "Always", "expression": ` + strconv.Quote(expression) + `}`)}},
	}}}
	return c
}

// TestDefaultsWithoutTheGate checks that default constraints have no effect while the feature gate is off.
func TestDefaultsWithoutTheGate(t *testing.T) {
	for _, p := range []*v1.Pod{pod(), plugintest.ExtendedPod(extendedResource, 2)} {
		for _, mode := range []configv1alpha1.AllocatorMode{configv1alpha1.AllocatorConstrained, configv1alpha1.AllocatorAll} {
			ctx, pl := start(t, false, classByDefault(ring2), slice(0, 2), claim(2))
			pl.mode = mode
			state := framework.NewCycleState()
			_, status := pl.PreFilter(ctx, state, p, nil)
			require.True(t, status.IsSuccess(), status)
			require.True(t, pl.Filter(ctx, state, p, node(nodeName)).IsSuccess())
		}
	}
}

func TestDefaultsLeaveOtherPodsToUpstream(t *testing.T) {
	for _, p := range []*v1.Pod{plugintest.ExtendedPod(extendedResource, 1), pod()} {
		ctx, pl := start(t, true, classByDefault(ring2), slice(0, 2), claim(1))
		state := framework.NewCycleState()
		_, status := pl.PreFilter(ctx, state, p, nil)
		require.True(t, status.IsSuccess(), status)
		require.IsType(t, &cycle.LimitedAllocator{}, usedAllocator(t, pl, state))
	}
}

func TestMistakesInDefaultsAreReportedByPreFilter(t *testing.T) {
	for expression, want := range map[string]string{
		"":              `ResourceClaim default/<extended-resources>: spec.devices.requests[0].exactly.deviceClassName: Invalid value: "mla.example.com": DeviceClass mla.example.com: spec.config[0]`,
		"devices.foo()": "constraint ring2 (DeviceClass mla.example.com spec.config[0]): ERROR: <input>:1:12: undeclared reference to 'foo'",
	} {
		ctx, pl := start(t, true, classByDefault(expression), slice(0, 1))
		_, status := pl.PreFilter(ctx, framework.NewCycleState(), plugintest.ExtendedPod(extendedResource, 2), nil)
		require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
		require.Contains(t, status.Message(), want)
	}
}

// TestExtendedRequestsAreUpstreams checks that explanations use the same claim that upstream's plugin passes to the allocator.
func TestExtendedRequestsAreUpstreams(t *testing.T) {
	sidecar := plugintest.ExtendedContainer(extendedResource, 1)
	sidecar.RestartPolicy = ptr.To(v1.ContainerRestartPolicyAlways)
	for name, edit := range map[string]func(*v1.PodSpec){
		"one container": func(*v1.PodSpec) {},
		"two containers": func(s *v1.PodSpec) {
			s.Containers = append(s.Containers, plugintest.ExtendedContainer(extendedResource, 3))
		},
		"two names": func(s *v1.PodSpec) {
			s.Containers = append(s.Containers, plugintest.ExtendedContainer(resourceapi.ResourceDeviceClassPrefix+className, 2))
		},
		"init with less": func(s *v1.PodSpec) {
			s.InitContainers = []v1.Container{plugintest.ExtendedContainer(extendedResource, 1)}
		},
		"init with more": func(s *v1.PodSpec) {
			s.InitContainers = []v1.Container{plugintest.ExtendedContainer(extendedResource, 4)}
		},
		"two init with more": func(s *v1.PodSpec) {
			s.InitContainers = []v1.Container{plugintest.ExtendedContainer(extendedResource, 3), plugintest.ExtendedContainer(extendedResource, 5)}
		},
		"init before and after one": func(s *v1.PodSpec) {
			s.InitContainers = []v1.Container{plugintest.ExtendedContainer(extendedResource, 4), sidecar, plugintest.ExtendedContainer(extendedResource, 4)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plugintest.ExtendedPod(extendedResource, 2)
			edit(&p.Spec)
			ctx, pl := start(t, true, classByDefault("true"), slice(0, 1, 2, 3, 4, 5, 6, 7, 8))
			state := framework.NewCycleState()
			_, status := pl.PreFilter(ctx, state, p, nil)
			require.True(t, status.IsSuccess(), status)
			field, status := pl.allocatorIn(state)
			require.True(t, status.IsSuccess(), status)
			seen := &lastClaims{Allocator: *field}
			*field = seen
			require.True(t, pl.Filter(ctx, state, p, node(nodeName)).IsSuccess())
			require.Equal(t, seen.claims[0].Spec, pl.resolver.ExtendedClaim(p).Spec)
			require.Equal(t, seen.claims[0].Name, pl.resolver.ExtendedClaim(p).Name)
			// Upstream's claim does not record which requests serve which container. MeasuredAllocator adds this annotation.
			annotations := maps.Clone(pl.resolver.ExtendedClaim(p).Annotations)
			delete(annotations, v1alpha1.AttributeDomain+"/containers")
			require.Equal(t, seen.claims[0].Annotations, annotations)
		})
	}
}

// lastClaims keeps the claims of its last call.
type lastClaims struct {
	structured.Allocator
	claims []*resourceapi.ResourceClaim
}

func (l *lastClaims) Allocate(ctx context.Context, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	l.claims = claims
	return l.Allocator.Allocate(ctx, node, claims)
}

// TestAmountsOutOfRangeAreNotUsed: a claim that requests an amount out of range fits nowhere, and another claim gets the
// device. If the scheduler computed with the amount, the evaluation would not end.
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
				require.NoError(t, observe.LimitQuantities(h.Factory, func() events.EventRecorderLogger { return recorder }, measured))
				pl, err := newPlugin(ctx, upstreamArgsOrNone(args), h, features(), true, measured, newShared())
				require.NoError(t, err)
				h.Start(ctx, t, class(), objects[0])
				require.Equal(t, "Warning AmountsOutOfRange The scheduler ignores amounts outside the range of an int64 in milli- to exa-units. Correct them in the driver. Ignored: capacity m of device mla-0", <-recorder.Events)
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
