// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	compbase "k8s.io/component-base/metrics"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
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
	// activated has the pods that were to be tried. The claims of each namespace are prepared in a goroutine of
	// their own, and each activates pods.
	mutex     sync.Mutex
	activated []string
}

func (h *handle) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.activated = append(h.activated, slices.Sorted(maps.Keys(pods))...)
}

// tried are the pods that were activated, in this order.
func (h *handle) tried() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.activated)
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
func (h *handle) EventRecorder() events.EventRecorderLogger              { return &events.FakeRecorder{} }
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

const (
	waitFor = 2 * time.Minute
	tick    = time.Millisecond

	ring2 = "devices.map(d, d.attributes['mla.example.com'].index).max() - " +
		"devices.map(d, d.attributes['mla.example.com'].index).min() == 1"
)

func typeOf(data fwk.StateData) reflect.Type { return reflect.TypeOf(data) }

func ktestingLogger(ctx context.Context) klog.Logger { return klog.FromContext(ctx) }

// usedAllocator returns what PreFilter left in upstream's state.
func usedAllocator(t *testing.T, pl *DynamicResourcesCEL, state fwk.CycleState) structured.Allocator {
	t.Helper()
	data, err := state.Read(dynamicresources.Name)
	require.NoError(t, err)
	field, err := pl.exchange.allocator(data)
	require.NoError(t, err)
	return *field
}

func TestPodWithCELConstraintRunsOurs(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 2, 3), constrain(t, claim(2), "ring2", ring2))
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.IsType(t, &measuredAllocator{}, usedAllocator(t, pl, state))

	require.True(t, pl.Filter(ctx, state, pod(), node(nodeName)).IsSuccess())
	status = pl.Filter(ctx, state, pod(), node("node-2"))
	require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code())
	require.Equal(t, "request mla: 0 of 2 devices", status.Message())

	require.True(t, pl.Reserve(ctx, state, pod(), nodeName).IsSuccess())
	pending := pl.resolver.manager.ResourceClaims().GetPendingAllocation("claim")
	require.NotNil(t, pending)
	var devices []string
	for _, result := range pending.Devices.Results {
		devices = append(devices, result.Device)
	}
	require.Equal(t, []string{"mla-2", "mla-3"}, devices, "0 and 2 are not contiguous")
	pl.Unreserve(ctx, state, pod(), nodeName)
	require.Nil(t, pl.resolver.manager.ResourceClaims().GetPendingAllocation("claim"))
}

func node(name string) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return info
}

func TestAllocatedClaimsAreLeftAlone(t *testing.T) {
	c := constrain(t, claim(2), "ring2", ring2)
	c.Status.Allocation = &resourceapi.AllocationResult{}
	// Even with the gate off: disabling the feature keeps what is allocated.
	ctx, pl := start(t, false, class(), slice(0, 1), c)
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	require.Nil(t, usedAllocator(t, pl, state))
}

func TestDisabledDynamicResourceAllocation(t *testing.T) {
	off := features()
	off.EnableDynamicResourceAllocation = false
	pl, err := newPlugin(t.Context(), nil, &handle{}, off, true, newMetrics(t), newShared())
	require.NoError(t, err)
	_, status := pl.PreFilter(t.Context(), framework.NewCycleState(), pod(), nil)
	require.True(t, status.IsSkip())
}

func TestArguments(t *testing.T) {
	defaults, err := decodeArgs(nil, features(), utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Equal(t, configv1alpha1.AllocatorConstrained, defaults.Allocator)
	decoded := upstreamArgs(defaults, features())
	require.Equal(t, 10*time.Second, decoded.FilterTimeout.Duration, "upstream's default is for its own name only")
	require.Equal(t, 600*time.Second, decoded.BindingTimeout.Duration)

	given, err := decodeArgs(&runtime.Unknown{Raw: []byte(`{"filterTimeout": "3s", "allocator": "All"}`)}, features(), utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Equal(t, 3*time.Second, upstreamArgs(given, features()).FilterTimeout.Duration)
	require.Equal(t, configv1alpha1.AllocatorAll, given.Allocator)

	_, err = decodeArgs(&runtime.Unknown{Raw: []byte(`{"filterTimeuot": "3s"}`)}, features(), utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "filterTimeuot")
	_, err = decodeArgs(&v1.Pod{}, features(), utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "DynamicResourcesCEL: got arguments of type *v1.Pod, want an object of kind DynamicResourcesCELArgs")
}

// An argument for what the emulated version lacks is an error only if it is given.
func TestArgumentsOfWhatIsOff(t *testing.T) {
	off := features()
	off.EnableDRASchedulerFilterTimeout, off.EnableDRADeviceBindingConditions = false, false
	defaults, err := decodeArgs(nil, off, utilfeature.DefaultFeatureGate)
	require.NoError(t, err)
	require.Error(t, validation.ValidateDynamicResourcesArgs(nil, upstreamArgs(defaults, features()), off))
	require.NoError(t, validation.ValidateDynamicResourcesArgs(nil, upstreamArgs(defaults, off), off))

	_, err = decodeArgs(&runtime.Unknown{Raw: []byte(`{"filterTimeout": "3s", "bindingTimeout": "1m"}`)}, off, utilfeature.DefaultFeatureGate)
	require.ErrorContains(t, err, "args.filterTimeout: Forbidden: needs the feature gate DRASchedulerFilterTimeout, which is off; leave it out, or enable the gate in the API server and the scheduler")
	require.ErrorContains(t, err, "args.bindingTimeout: Forbidden: needs the feature gate DRADeviceBindingConditions, which is off; ")

	older := featuregate.NewVersionedFeatureGate(version.MustParse("1.35"))
	require.NoError(t, older.AddVersioned(utilfeature.DefaultMutableFeatureGate.GetAllVersioned()))
	require.Equal(t, "DRADeviceBindingConditions, on by default since Kubernetes 1.36, but this is 1.35", describeGate(older, kubefeatures.DRADeviceBindingConditions))
}
