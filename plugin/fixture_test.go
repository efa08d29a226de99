// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	compbase "k8s.io/component-base/metrics"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/metrics"
)

const (
	driver    = "mla.example.com"
	className = "mla.example.com"
	nodeName  = "node-1"
)

// handle is as much of a scheduler as the plugin uses, with the scheduler's own
// claim tracker and listers on top of a fake API.
type handle struct {
	fwk.Handle
	client  kubernetes.Interface
	factory informers.SharedInformerFactory
	manager fwk.SharedDRAManager
	// activated has the pods that were to be tried.
	activated atomic.Pointer[[]string]
}

func (h *handle) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	names := slices.Sorted(maps.Keys(pods))
	if known := h.activated.Load(); known != nil {
		names = append(slices.Clone(*known), names...)
	}
	h.activated.Store(&names)
}

// newShared is for one profile. What a pod is told depends on no time.
func newShared() *profiles {
	shared := newProfiles(guard.New(clocktesting.NewFakePassiveClock(time.Now())), utilfeature.DefaultFeatureGate)
	shared.withTimeout = func(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
		return context.WithCancel(ctx)
	}
	return shared
}

func (h *handle) ClientSet() kubernetes.Interface                        { return h.client }
func (h *handle) KubeConfig() *rest.Config                               { return nil }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) SharedDRAManager() fwk.SharedDRAManager                 { return h.manager }
func (h *handle) ProfileName() string                                    { return "celset-scheduler" }

func features() plfeature.Features {
	return plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
}

// start returns the plugin with the given objects in its caches.
func start(t *testing.T, enabled bool, objects ...runtime.Object) (context.Context, *DynamicResourcesCEL) {
	t.Helper()
	return startMeasured(t, compbase.NewKubeRegistry(), enabled, objects...)
}

// newMetrics returns metrics of their own registry.
func newMetrics(t testing.TB) *metrics.Metrics {
	t.Helper()
	measured, err := metrics.New(compbase.NewKubeRegistry(), time.Now)
	require.NoError(t, err)
	return measured
}

// startMeasured is start with a registry for the metrics.
func startMeasured(t *testing.T, registry metrics.Registry, enabled bool, objects ...runtime.Object) (context.Context, *DynamicResourcesCEL) {
	t.Helper()
	measured, err := metrics.New(registry, time.Now)
	require.NoError(t, err)
	ctx, h := newHandle(t, objects...)
	pl, err := newPlugin(ctx, nil, h, features(), enabled, measured, newShared())
	require.NoError(t, err)
	h.start(ctx, t, objects...)
	return ctx, pl
}

// newHandle returns a handle that has not been started yet, and a context that ends
// with the test.
func newHandle(t testing.TB, objects ...runtime.Object) (context.Context, *handle) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	claims := assumecache.NewAssumeCache(ktestingLogger(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	tracker, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		SliceInformer: factory.Resource().V1().ResourceSlices(),
		KubeClient:    client,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	manager := dynamicresources.NewDRAManager(ctx, claims, tracker, factory)
	// As the scheduler does.
	resolver, ok := manager.DeviceClassResolver().(cache.ResourceEventHandler)
	require.True(t, ok)
	_, err = factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(resolver)
	require.NoError(t, err)
	return ctx, &handle{client: client, factory: factory, manager: manager}
}

// start waits until the objects are in the caches.
func (h *handle) start(ctx context.Context, t testing.TB, objects ...runtime.Object) {
	t.Helper()
	h.factory.Start(ctx.Done())
	h.factory.WaitForCacheSync(ctx.Done())
	require.Eventually(t, func() bool {
		for _, object := range objects {
			class, ok := object.(*resourceapi.DeviceClass)
			if ok && h.manager.DeviceClassResolver().GetDeviceClass(v1.ResourceName(resourceapi.ResourceDeviceClassPrefix+class.Name)) == nil {
				return false
			}
		}
		listed, err := h.manager.ResourceClaims().List()
		if err != nil || len(listed) != count[*resourceapi.ResourceClaim](objects) {
			return false
		}
		inUse, err := h.manager.ResourceClaims().GatherAllocatedState()
		return err == nil && len(inUse.AllocatedDevices)+len(inUse.AllocatedSharedDeviceIDs) == allocated(objects)
	}, waitFor, tick)
}

func count[T runtime.Object](objects []runtime.Object) int {
	n := 0
	for _, object := range objects {
		if _, ok := object.(T); ok {
			n++
		}
	}
	return n
}

// allocated counts the devices of claims.
func allocated(objects []runtime.Object) int {
	n := 0
	for _, object := range objects {
		if c, ok := object.(*resourceapi.ResourceClaim); ok && c.Status.Allocation != nil {
			n += len(c.Status.Allocation.Devices.Results)
		}
	}
	return n
}

func class() *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: className}}
}

// slice publishes devices with the given indices.
func slice(indices ...int64) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   driver,
			NodeName: ptr.To(nodeName),
			Pool:     resourceapi.ResourcePool{Name: nodeName, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for _, index := range indices {
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{
			Name:       deviceName(index),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: ptr.To(index)}},
		})
	}
	return s
}

func deviceName(index int64) string { return "mla-" + string(rune('0'+index)) }

// claim wants count devices.
func claim(count int64) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: types.UID("claim")},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{
				Name: "mla",
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: className,
					AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
					Count:           count,
				},
			}},
		}},
	}
}

// constrain adds a constraint, reference and definition.
func constrain(t testing.TB, c *resourceapi.ResourceClaim, name, expression string) *resourceapi.ResourceClaim {
	t.Helper()
	raw, err := json.Marshal(map[string]string{
		"apiVersion": "celset.dev/v1alpha1",
		"kind":       "CELDeviceConstraint",
		"name":       name,
		"expression": expression,
	})
	require.NoError(t, err)
	reference(c, name)
	c.Spec.Devices.Config = append(c.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver:     v1alpha1.DriverName,
			Parameters: runtime.RawExtension{Raw: raw},
		}},
	})
	return c
}

func reference(c *resourceapi.ResourceClaim, name string) *resourceapi.ResourceClaim {
	c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + name)),
	})
	return c
}

// pod uses the claim.
func pod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", UID: types.UID("pod")},
		Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{
			{Name: "mla", ResourceClaimName: ptr.To("claim")},
		}},
	}
}
