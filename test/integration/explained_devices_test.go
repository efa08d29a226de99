// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefeatures "k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// deviceKinds returns kinds of pods that depend on taints of devices, on counters, or on devices of pods with a lower priority.
func (l *explainLab) deviceKinds() (kinds []explainedKind) {
	if minor.Has(kubefeatures.DRADeviceTaints) {
		kinds = append(kinds, explainedKind{"tainted devices", l.taintedDevices}, explainedKind{"tainted devices that are tolerated", l.toleratedDevices},
			explainedKind{"a tainted device", l.taintedDevice})
	}
	if minor.Has(kubefeatures.DRAPartitionableDevices) {
		kinds = append(kinds, explainedKind{"partitions", l.partitions}, explainedKind{"counters that are used up", l.usedUp})
	}
	return append(kinds, explainedKind{"devices of a pod with less priority", l.evicting}, explainedKind{"priority that evicts nobody", l.polite})
}

// deviceTaint is the key of the taints that the test sets on devices.
const deviceTaint = "example.com/broken"

func (l *explainLab) taint() resourceapi.DeviceTaint {
	effects := []resourceapi.DeviceTaintEffect{resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute}
	return resourceapi.DeviceTaint{Key: deviceTaint, Effect: effects[l.IntN(len(effects))]}
}

// tainting publishes devices on a node. are reports whether the i-th device gets a taint.
func (l *explainLab) tainting(t *testing.T, are func(i int) bool) (class string, taint resourceapi.DeviceTaint) {
	taint = l.taint()
	i := 0
	class = l.editedRing(t, func(d *resourceapi.Device) {
		if i++; are(i) {
			d.Taints = []resourceapi.DeviceTaint{taint}
		}
	}, open)
	return class, taint
}

func (l *explainLab) taintedDevices(t *testing.T) explained {
	class, taint := l.tainting(t, func(int) bool { return true })
	return explained{
		Pod:    l.podWith(t, l.parts(class, int64(1+l.IntN(ringSize)))...),
		reason: fmt.Sprintf("devices that match have taints that the claims don't tolerate: %s=:%s", deviceTaint, taint.Effect),
	}
}

func (l *explainLab) toleratedDevices(t *testing.T) explained {
	class, taint := l.tainting(t, func(i int) bool { return i%2 == 0 })
	// Set the effect in the toleration: without it, the eviction controller of 1.37.2 ignores a toleration of a NoExecute taint.
	return explained{Pod: l.podWith(t, append(l.parts(class, int64(1+l.IntN(ringSize))), func(claim *resourceapi.DeviceClaim) {
		claim.Requests[0].Exactly.Tolerations = []resourceapi.DeviceToleration{{Key: deviceTaint, Operator: resourceapi.DeviceTolerationOpExists, Effect: taint.Effect}}
	})...)}
}

// taintedDevice makes a pod for several devices, one with a taint. Whether the pod needs this device depends on the random
// number of requested devices.
func (l *explainLab) taintedDevice(t *testing.T) explained {
	class, _ := l.tainting(t, func(i int) bool { return i == 1 })
	needs := l.IntN(2)
	return explained{Pod: l.podWith(t, l.parts(class, int64(ringSize-1+needs))...), reason: []string{"", "devices that match have taints"}[needs]}
}

// card publishes a device that can be allocated as a whole or as two halves.
func (l *explainLab) card(t *testing.T) (class string) {
	class = l.Family(fmt.Sprint("m", l.number)).Driver
	slots := func(n int64) map[string]resourceapi.Counter {
		return map[string]resourceapi.Counter{"slots": {Value: *resource.NewQuantity(n, resource.DecimalSI)}}
	}
	counters := resourceapi.ResourceSliceSpec{
		Driver: class, NodeName: &l.Nodes[open], Pool: resourceapi.ResourcePool{Name: l.Nodes[open], Generation: 1, ResourceSliceCount: 2},
	}
	devices := counters
	counters.SharedCounters = []resourceapi.CounterSet{{Name: "card", Counters: slots(4)}}
	for name, size := range map[string]int64{"whole": 4, "half-0": 2, "half-1": 2} {
		devices.Devices = append(devices.Devices, resourceapi.Device{
			Name: name, Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"size": {IntValue: &size}},
			ConsumesCounters: []resourceapi.DeviceCounterConsumption{{CounterSet: "card", Counters: slots(size)}},
		})
	}
	l.CreateSlice(t, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: class + "-counters"}, Spec: counters})
	l.CreateSlice(t, &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: class + "-devices"}, Spec: devices})
	l.CreateClass(t, class)
	return class
}

func partitionsOf(class string, size, count int64) []env.Part {
	return []env.Part{env.Exactly("r", resourceapi.ExactDeviceRequest{
		DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		Selectors: []resourceapi.DeviceSelector{env.Selector(fmt.Sprintf("device.attributes['%s'].size == %d", class, size))},
	}), env.Constrained("count", fmt.Sprintf("size(devices) == %d", count))}
}

func (l *explainLab) partitions(t *testing.T) explained {
	count := int64(1 + l.IntN(2))
	return explained{Pod: l.podWith(t, partitionsOf(l.card(t), 4/count, count)...)}
}

// usedUp makes a pod that requests a half or the whole of a card whose other half is in use.
func (l *explainLab) usedUp(t *testing.T) explained {
	class := l.card(t)
	l.hold(t, partitionsOf(class, 2, 1)...)
	if l.IntN(2) == 0 {
		return explained{Pod: l.podWith(t, partitionsOf(class, 2, 1)...)}
	}
	return explained{
		Pod:    l.podWith(t, partitionsOf(class, 4, 1)...),
		reason: "not enough counters are free: counter slots of counter set card of pool " + class + "/" + l.Nodes[open] + ": 4 needed, 2 of 4 free",
	}
}

// hold creates a pod that keeps devices in use.
func (l *explainLab) hold(t *testing.T, parts ...env.Part) {
	name := l.name() + "-holder"
	l.CreateClaim(t, name, parts...)
	pod := l.here(env.Pod(name, env.CelsetProfile, name))
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	l.CreatePodAsIs(t, pod)
	l.EventuallyPod(t, name, "bound", isBound)
}

// evicting makes a pod that gets its devices by evicting another pod. explain does not predict evictions.
func (l *explainLab) evicting(t *testing.T) explained {
	pod, before := l.prior(t, corev1.PreemptLowerPriority)
	return explained{Pod: pod, before: before}
}

func (l *explainLab) polite(t *testing.T) explained {
	pod, reason := l.prior(t, corev1.PreemptNever)
	return explained{Pod: pod, reason: reason}
}

// prior makes a pod that has a priority, and that needs the devices of a pod without priority. why is the reason that explain
// gives while these devices are in use.
func (l *explainLab) prior(t *testing.T, policy corev1.PreemptionPolicy) (pod *corev1.Pod, why string) {
	class := l.CreatePriorityClass(t, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: l.Namespace + "-"}, Value: 1000, PreemptionPolicy: &policy,
	})
	driver := l.ring(t, open)
	l.hold(t, l.parts(driver, ringSize-1)...)
	pod = l.podWith(t, l.parts(driver, 2)...)
	pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = class.Name, &class.Value, &policy
	return pod, "in the way: claim " + l.Namespace + "/" + l.name() + "-holder"
}
