// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package holds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
)

// units is the number of units into which a form divides the devices of a node. A claim gets one or more units.
const units = 4

// A form is a way to divide the devices of a node among claims: whole devices, partitions, or shares.
type form struct {
	name  string
	gates []featuregate.Feature
	// slices returns the specs of a node's ResourceSlices, without driver, node and pool.
	slices func() []resourceapi.ResourceSliceSpec
	// unit returns the parts of a claim for one unit. If units of the form are distinguishable, it is the i-th unit.
	unit func(driver string, i int) []env.Part
	// all returns the parts of a claim for all units of a node.
	all func(driver string) []env.Part
}

func forms() []form { return []form{wholeDevices, partitions, shares} }

// wholeDevices is a row of devices. A CEL constraint requires that the devices of a claim are consecutive.
var wholeDevices = form{
	name: "whole devices",
	slices: func() []resourceapi.ResourceSliceSpec {
		return []resourceapi.ResourceSliceSpec{{Devices: row(0, units)}}
	},
	unit: func(driver string, i int) []env.Part {
		return []env.Part{one(driver, fmt.Sprintf("device.attributes[%q].index == %d", driver, i))}
	},
	all: func(driver string) []env.Part { return inARow(driver, units) },
}

// row returns n devices with consecutive indices, starting with first.
func row(first, n int) []resourceapi.Device {
	var devices []resourceapi.Device
	for i := first; i < first+n; i++ {
		devices = append(devices, resourceapi.Device{Name: fmt.Sprintf("d%d", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"index": {IntValue: ptr.To(int64(i))},
		}})
	}
	return devices
}

// inARow returns the parts of a claim for n devices with consecutive indices.
func inARow(driver string, n int) []env.Part {
	return []env.Part{env.Request("units", driver, int64(n)), env.Constrained("row", env.Contiguous(driver, n))}
}

// one returns the parts of a claim for one device that matches the selector.
func one(driver, selector string) env.Part {
	return env.Exactly("unit", resourceapi.ExactDeviceRequest{
		DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		Selectors: []resourceapi.DeviceSelector{env.Selector(selector)},
	})
}

// partitions is a chip that claims use in quarters or as a whole.
var partitions = form{
	name: "partitions", gates: []featuregate.Feature{kubefeatures.DRAPartitionableDevices},
	slices: func() []resourceapi.ResourceSliceSpec {
		devices := []resourceapi.Device{partition("whole", "whole", units)}
		for i := range units {
			devices = append(devices, partition(fmt.Sprintf("quarter-%d", i), "quarter", 1))
		}
		return []resourceapi.ResourceSliceSpec{
			{SharedCounters: []resourceapi.CounterSet{{Name: "chip", Counters: slots(units)}}}, {Devices: devices},
		}
	},
	unit: func(driver string, _ int) []env.Part {
		return []env.Part{one(driver, fmt.Sprintf("device.attributes[%q].size == 'quarter'", driver))}
	},
	all: func(driver string) []env.Part {
		return []env.Part{one(driver, fmt.Sprintf("device.attributes[%q].size == 'whole'", driver))}
	},
}

func partition(name, size string, n int64) resourceapi.Device {
	return resourceapi.Device{
		Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"size": {StringValue: &size}},
		ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: "chip", Counters: slots(n)}},
	}
}

func slots(n int64) map[string]resourceapi.Counter {
	return map[string]resourceapi.Counter{"slots": {Value: *resource.NewQuantity(n, resource.DecimalSI)}}
}

// shares is a device that several claims share. Each claim consumes a part of its capacity.
var shares = form{
	name: "shares", gates: []featuregate.Feature{kubefeatures.DRAConsumableCapacity},
	slices: func() []resourceapi.ResourceSliceSpec {
		return []resourceapi.ResourceSliceSpec{{Devices: []resourceapi.Device{{
			Name: "chip", AllowMultipleAllocations: ptr.To(true),
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"slots": {Value: *resource.NewQuantity(units, resource.DecimalSI)}},
		}}}}
	},
	unit: func(driver string, _ int) []env.Part { return []env.Part{share(driver, 1)} },
	all:  func(driver string) []env.Part { return []env.Part{share(driver, units)} },
}

// share returns the parts of a claim for n slots of a device.
func share(driver string, n int64) env.Part {
	return env.Exactly("unit", resourceapi.ExactDeviceRequest{
		DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
		Capacity: &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{"slots": *resource.NewQuantity(n, resource.DecimalSI)}},
	})
}

// resourceSlices returns the slices of a node.
func (f *form) resourceSlices(driver, node string) []*resourceapi.ResourceSlice {
	return resourceSlicesOf(driver, node, f.slices()...)
}

func resourceSlicesOf(driver, node string, specs ...resourceapi.ResourceSliceSpec) []*resourceapi.ResourceSlice {
	var all []*resourceapi.ResourceSlice
	for i, spec := range specs {
		spec.Driver, spec.NodeName = driver, &node
		spec.Pool = resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(specs))}
		all = append(all, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, i)}, Spec: spec})
	}
	return all
}

// A request changes a pod before it is created.
type request func(*corev1.Pod)

// of sets the PriorityClass of a pod.
func of(class string) request { return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = class } }

// by sets the scheduler profile of a pod.
func by(profile string) request { return func(pod *corev1.Pod) { pod.Spec.SchedulerName = profile } }

// on restricts a pod to a node.
func on(node string) request {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node} }
}

// graceOf sets the pod's termination grace period in seconds.
func graceOf(seconds int64) request {
	return func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &seconds }
}

// nameNode sets spec.nodeName, so that the pod is bound without a scheduler.
func nameNode(node string) request { return func(pod *corev1.Pod) { pod.Spec.NodeName = node } }

// cores makes a pod request n CPUs.
func cores(n int64) request {
	return func(pod *corev1.Pod) {
		cpu := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
		pod.Spec.Containers[0].Resources.Requests = cpu
	}
}

// finalized adds a finalizer, so that the pod's object stays after its deletion.
func finalized(pod *corev1.Pod) { pod.Finalizers = []string{"celset.dev/test"} }
