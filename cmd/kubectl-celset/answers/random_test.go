// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

const (
	randomDriver = "gpu.example.com"
	randomClass  = "gpu"
)

// randomWorld draws objects: nodes with devices, claims that have devices, and pending claims, templates and pods.
type randomWorld struct {
	*rapid.T
	nodes   []*corev1.Node
	slices  []*resourceapi.ResourceSlice
	classes []*resourceapi.DeviceClass
	rules   []*resourceapi.DeviceTaintRule
	added   []*v1alpha1.DeviceAttributes
	claims  []*resourceapi.ResourceClaim
	made    []*resourceapi.ResourceClaimTemplate
	pods    []*corev1.Pod
}

func (w *randomWorld) oneIn(n int, label string) bool {
	return rapid.IntRange(0, n-1).Draw(w.T, label) == n-1
}

func (w *randomWorld) upTo(least, most int, label string) int {
	return rapid.IntRange(least, most).Draw(w.T, label)
}

func drawWorld(t *rapid.T) *randomWorld {
	w := &randomWorld{T: t}
	w.classes = append(w.classes, &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: randomClass},
		Spec: resourceapi.DeviceClassSpec{
			Selectors:            []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + randomDriver + "'"}}},
			ExtendedResourceName: ptr.To("example.com/gpu"),
		},
	})
	if w.oneIn(4, "default") {
		w.classes[0].Spec.Config = append(w.classes[0].Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: definition("same", "devices.all(d, d.attributes['gpu.example.com'].model == devices[0].attributes['gpu.example.com'].model)", "Always")})
	}
	for i := range w.upTo(1, 3, "nodes") {
		w.node(fmt.Sprintf("n%d", i))
	}
	if w.oneIn(4, "network") {
		slice := w.slice("network", 3)
		slice.Spec.AllNodes = ptr.To(true)
	}
	if w.oneIn(4, "rule") {
		w.rules = append(w.rules, &resourceapi.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "rule"}, Spec: resourceapi.DeviceTaintRuleSpec{
			DeviceSelector: &resourceapi.DeviceTaintSelector{Driver: ptr.To(randomDriver), Device: ptr.To("d1")},
			Taint:          resourceapi.DeviceTaint{Key: "bad", Effect: resourceapi.DeviceTaintEffectNoSchedule},
		}})
	}
	if w.oneIn(4, "added") {
		w.added = append(w.added, &v1alpha1.DeviceAttributes{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: v1alpha1.DeviceAttributesSpec{
			Driver:     randomDriver,
			Attributes: []v1alpha1.ComputedAttribute{{Name: "half", Expression: "device.attributes['gpu.example.com'].index / 2"}},
		}})
	}
	w.inUse()
	switch w.upTo(0, 3, "subject") {
	case 0:
		w.claims = append(w.claims, &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Spec: w.spec()})
	case 1:
		w.made = append(w.made, &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: w.spec()}})
	default:
		w.pod()
	}
	return w
}

func definition(name, expression, enforcement string) resourceapi.DeviceConfiguration {
	raw := fmt.Sprintf(`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":%q,"expression":%q`, name, expression)
	if enforcement != "" {
		raw += fmt.Sprintf(`,"enforcement":%q`, enforcement)
	}
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: []byte(raw + "}")}}}
}

func (w *randomWorld) node(name string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": fmt.Sprint(w.upTo(0, 1, "zone"))}}}
	if w.oneIn(2, "allocatable") {
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3"), corev1.ResourceCPU: resource.MustParse("4")}
	}
	w.nodes = append(w.nodes, node)
	w.slice(name, w.upTo(0, 6, "devices")).Spec.NodeName = ptr.To(name)
}

func (w *randomWorld) slice(pool string, count int) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool}, Spec: resourceapi.ResourceSliceSpec{
		Driver: randomDriver, Pool: resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
	}}
	counters := w.oneIn(4, "counters")
	if counters {
		slice.Spec.Pool.ResourceSliceCount = 2
	}
	for i := range count {
		device := resourceapi.Device{Name: fmt.Sprintf("d%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"index": {IntValue: ptr.To(int64(i))}, "model": {StringValue: ptr.To(rapid.SampledFrom([]string{"a", "a", "b"}).Draw(w.T, "model"))},
		}}
		if w.oneIn(5, "shared") {
			device.AllowMultipleAllocations = ptr.To(true)
			device.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("4")}}
		}
		if w.oneIn(8, "taint") {
			device.Taints = []resourceapi.DeviceTaint{{Key: "broken", Effect: resourceapi.DeviceTaintEffectNoExecute}}
		}
		if counters && w.oneIn(2, "consumes") {
			device.ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: map[string]resourceapi.Counter{"slots": {Value: resource.MustParse("2")}}}}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, device)
	}
	w.slices = append(w.slices, slice)
	if counters {
		other := slice.DeepCopy()
		other.Name, other.Spec.Devices = pool+"-counters", nil
		other.Spec.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: map[string]resourceapi.Counter{"slots": {Value: resource.MustParse("5")}}}}
		w.slices = append(w.slices, other)
		if pool == "network" {
			other.Spec.AllNodes = ptr.To(true)
		} else {
			other.Spec.NodeName = ptr.To(pool)
		}
	}
	return slice
}

// inUse draws claims that have devices.
func (w *randomWorld) inUse() {
	for _, slice := range w.slices {
		used := 0
		for i := range slice.Spec.Devices {
			device := &slice.Spec.Devices[i]
			if !w.oneIn(4, "in use") || len(device.ConsumesCounters) > 0 && used > 1 {
				continue
			}
			used += len(device.ConsumesCounters)
			result := resourceapi.DeviceRequestAllocationResult{Request: "r", Driver: randomDriver, Pool: slice.Spec.Pool.Name, Device: device.Name}
			switch {
			case device.AllowMultipleAllocations != nil:
				result.ShareID = ptr.To(types.UID(fmt.Sprintf("6f0a1ab6-6c2a-4b1e-8a61-0b6a9a4f0c%02d", len(w.claims))))
				result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(fmt.Sprint(w.upTo(1, 4, "consumed")))}
			case w.oneIn(4, "admin"):
				result.AdminAccess = ptr.To(true)
			}
			claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprintf("used-%d", len(w.claims))}}
			claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: randomClass, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}}}
			claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}}}
			w.claims = append(w.claims, claim)
		}
	}
}

func (w *randomWorld) exactly() *resourceapi.ExactDeviceRequest {
	request := &resourceapi.ExactDeviceRequest{DeviceClassName: randomClass, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: int64(w.upTo(1, 3, "count"))}
	if w.oneIn(6, "all") {
		request.AllocationMode, request.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	if w.oneIn(3, "selector") {
		request.Selectors = w.selectors()
	}
	if w.oneIn(10, "admin") {
		request.AdminAccess = ptr.To(true)
	}
	if w.oneIn(6, "capacity") {
		request.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"memory": resource.MustParse(fmt.Sprint(w.upTo(1, 5, "memory")))}}
	}
	if w.oneIn(6, "tolerates") {
		request.Tolerations = []resourceapi.DeviceToleration{{Operator: resourceapi.DeviceTolerationOpExists}}
	}
	return request
}

func (w *randomWorld) selectors() []resourceapi.DeviceSelector {
	return []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: rapid.SampledFrom([]string{
		"device.attributes['gpu.example.com'].model == 'a'", "device.attributes['gpu.example.com'].index > 1", "device.attributes['gpu.example.com'].index % 2 == 0",
	}).Draw(w.T, "expression")}}}
}

func (w *randomWorld) spec() (spec resourceapi.ResourceClaimSpec) {
	for i := range w.upTo(1, 2, "requests") {
		request := resourceapi.DeviceRequest{Name: fmt.Sprintf("r%d", i)}
		if w.oneIn(6, "alternatives") {
			for j := range 2 {
				of := w.exactly()
				if of.AllocationMode == "" {
					of.Count = 1
				}
				request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
					Name: fmt.Sprintf("s%d", j), DeviceClassName: of.DeviceClassName, Selectors: of.Selectors, AllocationMode: of.AllocationMode, Count: of.Count, Tolerations: of.Tolerations, Capacity: of.Capacity,
				})
			}
		} else {
			request.Exactly = w.exactly()
		}
		spec.Devices.Requests = append(spec.Devices.Requests, request)
	}
	switch w.upTo(0, 4, "constraint") {
	case 0:
		spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("gpu.example.com/model"))}}
	case 1:
		expression := rapid.SampledFrom([]string{
			"devices.all(a, devices.all(b, a.attributes['gpu.example.com'].index - b.attributes['gpu.example.com'].index < 3))",
			"devices.map(d, d.attributes['gpu.example.com'].index).sum() % 2 == 0 && devices.all(d, d.attributes['gpu.example.com'].index < 5)",
			"devices.exists(d, d.attributes['gpu.example.com'].model == 'b')",
			"devices.all(d, d.attributes['topology.celset.dev'].half > 0)",
		}).Draw(w.T, "expression")
		spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/c"))}}
		spec.Devices.Config = []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: definition("c", expression, "")}}
	}
	return spec
}

func (w *randomWorld) pod() {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	if w.oneIn(3, "selects") {
		pod.Spec.NodeSelector = map[string]string{"zone": "0"}
	}
	requests := corev1.ResourceList{}
	if w.oneIn(2, "cpu") {
		requests[corev1.ResourceCPU] = resource.MustParse("1500m")
	}
	extended := w.oneIn(4, "extended")
	if extended {
		requests["example.com/gpu"] = resource.MustParse(fmt.Sprint(w.upTo(1, 2, "gpus")))
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: requests}
	for i := range w.upTo(0, 2, "claims") {
		name := fmt.Sprintf("x%d", i)
		entry := corev1.PodResourceClaim{Name: name}
		if w.oneIn(2, "template") {
			entry.ResourceClaimTemplateName = ptr.To(name)
			w.made = append(w.made, &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: w.spec()}})
		} else {
			entry.ResourceClaimName = ptr.To(name)
			claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: w.spec()}
			if allocated := slices.IndexFunc(w.claims, func(c *resourceapi.ResourceClaim) bool { return c.Namespace == "other" }); allocated >= 0 && w.oneIn(4, "allocated") {
				claim = w.claims[allocated].DeepCopy()
				claim.Namespace, claim.Name = "default", name
				pool := claim.Status.Allocation.Devices.Results[0].Pool
				claim.Status.Allocation.NodeSelector = nil
				if pool != "network" {
					claim.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{pool}}}}}}
				}
				w.claims = slices.Delete(w.claims, allocated, allocated+1)
			}
			w.claims = append(w.claims, claim)
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, entry)
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: name})
	}
	w.pods = append(w.pods, pod)
}

// text returns the objects as documents.
func (w *randomWorld) text(t testing.TB) string {
	var all []string
	add := func(version, kind string, object any) {
		raw, err := yaml.Marshal(object)
		require.NoError(t, err)
		all = append(all, "apiVersion: "+version+"\nkind: "+kind+"\n"+string(raw))
	}
	for _, o := range w.nodes {
		add("v1", "Node", o)
	}
	for _, o := range w.slices {
		add("resource.k8s.io/v1", "ResourceSlice", o)
	}
	for _, o := range w.classes {
		add("resource.k8s.io/v1", "DeviceClass", o)
	}
	for _, o := range w.rules {
		add("resource.k8s.io/v1", "DeviceTaintRule", o)
	}
	for _, o := range w.added {
		add("celset.dev/v1alpha1", "DeviceAttributes", o)
	}
	for _, o := range w.claims {
		add("resource.k8s.io/v1", "ResourceClaim", o)
	}
	for _, o := range w.made {
		add("resource.k8s.io/v1", "ResourceClaimTemplate", o)
	}
	for _, o := range w.pods {
		add("v1", "Pod", o)
	}
	return strings.Join(all, "---\n")
}
