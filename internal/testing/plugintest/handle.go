// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugintest provides a scheduler's handle with a fake API, for tests of the plugin and of its parts. It also creates
// objects for these tests: devices with an index, and claims for some of them.
package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	compbase "k8s.io/component-base/metrics"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/plugin/metrics"
)

// Names of the objects that the functions below create.
const (
	Driver    = "mla.example.com"
	ClassName = "mla.example.com"
	NodeName  = "node-1"
)

// Handle has the parts of a scheduler's handle that the plugin uses. Its claim tracker and listers are the scheduler's own, on
// top of a fake API.
type Handle struct {
	fwk.Handle
	Client  kubernetes.Interface
	Factory informers.SharedInformerFactory
	Manager fwk.SharedDRAManager
	// activated has the names of the pods that were passed to Activate. The mutex guards it, because a goroutine per namespace
	// prepares claims and then activates pods.
	mutex     sync.Mutex
	activated []string
}

// Activate implements [fwk.Handle].
func (h *Handle) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.activated = append(h.activated, slices.Sorted(maps.Keys(pods))...)
}

// Activated returns the names of the activated pods, in the order of activation.
func (h *Handle) Activated() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Clone(h.activated)
}

// ClientSet implements [fwk.Handle].
func (h *Handle) ClientSet() kubernetes.Interface { return h.Client }

// KubeConfig implements [fwk.Handle].
func (h *Handle) KubeConfig() *rest.Config { return nil }

// SharedInformerFactory implements [fwk.Handle].
func (h *Handle) SharedInformerFactory() informers.SharedInformerFactory { return h.Factory }

// SharedDRAManager implements [fwk.Handle].
func (h *Handle) SharedDRAManager() fwk.SharedDRAManager { return h.Manager }

// EventRecorder implements [fwk.Handle].
func (h *Handle) EventRecorder() events.EventRecorderLogger { return &events.FakeRecorder{} }

// ProfileName implements [fwk.Handle].
func (h *Handle) ProfileName() string { return "celset-scheduler" }

// Features returns the features of a scheduler with the default feature gates.
func Features() plfeature.Features {
	return plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
}

// NewMetrics returns metrics of the plugin, registered in a new registry.
func NewMetrics(t testing.TB) *metrics.Metrics {
	t.Helper()
	measured, err := metrics.New(compbase.NewKubeRegistry(), time.Now)
	require.NoError(t, err)
	return measured
}

// NewHandle returns a handle whose informers are not started yet, and a context that ends with the test.
func NewHandle(t testing.TB, objects ...runtime.Object) (context.Context, *Handle) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, cancel := context.WithCancel(ctx)
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
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
	// Connect the resolver of device classes to the informer, as the scheduler does.
	resolver, ok := manager.DeviceClassResolver().(cache.ResourceEventHandler)
	require.True(t, ok)
	_, err = factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(resolver)
	require.NoError(t, err)
	return ctx, &Handle{Client: client, Factory: factory, Manager: manager}
}

// Start starts the informers and waits until the caches have the objects.
func (h *Handle) Start(ctx context.Context, t testing.TB, objects ...runtime.Object) {
	t.Helper()
	h.Factory.Start(ctx.Done())
	h.Factory.WaitForCacheSync(ctx.Done())
	require.Eventually(t, func() bool {
		for _, object := range objects {
			class, ok := object.(*resourceapi.DeviceClass)
			if ok && h.Manager.DeviceClassResolver().GetDeviceClass(v1.ResourceName(resourceapi.ResourceDeviceClassPrefix+class.Name)) == nil {
				return false
			}
		}
		listed, err := h.Manager.ResourceClaims().List()
		if err != nil || len(listed) != count[*resourceapi.ResourceClaim](objects) {
			return false
		}
		inUse, err := h.Manager.ResourceClaims().GatherAllocatedState()
		return err == nil && len(inUse.AllocatedDevices)+len(inUse.AllocatedSharedDeviceIDs) == allocated(objects)
	}, time.Minute, time.Millisecond)
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

// allocated returns the number of devices that are allocated to the claims in objects.
func allocated(objects []runtime.Object) int {
	n := 0
	for _, object := range objects {
		if c, ok := object.(*resourceapi.ResourceClaim); ok && c.Status.Allocation != nil {
			n += len(c.Status.Allocation.Devices.Results)
		}
	}
	return n
}

// Class returns the device class that selects the devices of [Slice].
func Class() *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: ClassName}}
}

// ClassDefining returns a class that defines constraints with the given names. The constraint "default" applies without a
// reference.
func ClassDefining(name string, constraints ...string) *resourceapi.DeviceClass {
	c := Class()
	c.Name = name
	for _, constraint := range constraints {
		enforcement := v1alpha1.EnforcementOnReference
		if constraint == "default" {
			enforcement = v1alpha1.EnforcementAlways
		}
		c.Spec.Config = append(c.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: fmt.Appendf(nil,
				`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": %q, "enforcement": %q, "expression": "true"}`,
				constraint, enforcement)}},
		}})
	}
	return c
}

// Slice returns a slice with one device for each index.
func Slice(indices ...int64) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver:   Driver,
			NodeName: ptr.To(NodeName),
			Pool:     resourceapi.ResourcePool{Name: NodeName, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for _, index := range indices {
		s.Spec.Devices = append(s.Spec.Devices, resourceapi.Device{
			Name:       DeviceName(index),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"index": {IntValue: ptr.To(index)}},
		})
	}
	return s
}

// DeviceName returns the name of the device with the index.
func DeviceName(index int64) string { return "mla-" + string(rune('0'+index)) }

// Claim returns a claim for count devices of [Class].
func Claim(count int64) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim", UID: types.UID("claim")},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{
				Name: "mla",
				Exactly: &resourceapi.ExactDeviceRequest{
					DeviceClassName: ClassName,
					AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
					Count:           count,
				},
			}},
		}},
	}
}

// ClaimForClass returns a claim with one request for each count. Each request asks for count devices of the class.
func ClaimForClass(class string, counts ...int64) *resourceapi.ResourceClaim {
	c := Claim(0)
	c.Spec.Devices.Requests = nil
	for i, n := range counts {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourceapi.DeviceRequest{
			Name:    fmt.Sprint("r", i),
			Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: n},
		})
	}
	return c
}

// Constrain adds the definition of a constraint and a reference to it to a claim.
func Constrain(t testing.TB, c *resourceapi.ResourceClaim, name, expression string) *resourceapi.ResourceClaim {
	t.Helper()
	raw, err := json.Marshal(map[string]string{
		"apiVersion": "celset.dev/v1alpha1",
		"kind":       "CELDeviceConstraint",
		"name":       name,
		"expression": expression,
	})
	require.NoError(t, err)
	Reference(c, name)
	c.Spec.Devices.Config = append(c.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver:     v1alpha1.DriverName,
			Parameters: runtime.RawExtension{Raw: raw},
		}},
	})
	return c
}

// Reference adds a reference to a constraint to a claim.
func Reference(c *resourceapi.ResourceClaim, name string) *resourceapi.ResourceClaim {
	c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + name)),
	})
	return c
}

// Pod returns a pod that uses the claim that [Claim] returns.
func Pod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", UID: types.UID("pod")},
		Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{
			{Name: "mla", ResourceClaimName: ptr.To("claim")},
		}},
	}
}

// Node returns a node without pods.
func Node(name string) fwk.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return info
}

// WithLog returns a context with a logger of verbosity 0, and a function that returns the logged entries.
func WithLog(ctx context.Context) (context.Context, func() ktesting.Log) {
	logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	buffer := logger.GetSink().(ktesting.Underlier).GetBuffer()
	return klog.NewContext(ctx, logger), buffer.Data
}

// RequireLogged requires that the log has an entry with the message.
func RequireLogged(t *testing.T, log func() ktesting.Log, message string) {
	t.Helper()
	logged := slices.ContainsFunc(log(), func(entry ktesting.LogEntry) bool { return entry.Message == message })
	require.True(t, logged, "%v has no %q", log(), message)
}

// MetricValues returns the values of metrics that are not zero, keyed by metric and labels. A histogram has its number of
// samples. Unless it measures seconds, it also has the sum of the samples.
func MetricValues(t *testing.T, registry compbase.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	result := map[string]float64{}
	keep := func(name string, value float64) {
		if value != 0 {
			result[name] = value
		}
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "celset_scheduler_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			if histogram := metric.GetHistogram(); histogram != nil {
				keep(name, float64(histogram.GetSampleCount()))
				if !strings.Contains(name, "seconds") {
					keep(name+" sum", histogram.GetSampleSum())
				}
				continue
			}
			keep(name, metric.GetCounter().GetValue()+metric.GetGauge().GetValue())
		}
	}
	return result
}

// ExtendedPod returns a pod that requests n of an extended resource and has no claims of its own.
func ExtendedPod[T ~string](name T, n int64) *v1.Pod {
	p := Pod()
	p.Spec.ResourceClaims = nil
	p.Spec.Containers = []v1.Container{ExtendedContainer(name, n)}
	return p
}

// ExtendedContainer returns a container that requests n of an extended resource.
func ExtendedContainer[T ~string](name T, n int64) v1.Container {
	amount := v1.ResourceList{v1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI), v1.ResourceCPU: resource.MustParse("1")}
	return v1.Container{Name: "main", Resources: v1.ResourceRequirements{Requests: amount, Limits: amount}}
}
