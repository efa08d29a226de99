// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
)

// retry moves waiting pods to the active queue after devices of the drivers have got other attributes. The scheduler has no event
// for this change: a DeviceAttributes object or the labels of a node have changed, or a new ResourceSlice was processed. The
// scheduler's own event for the ResourceSlice came earlier, and the pod was refused because the pool was incomplete.
func (pl *DynamicResourcesCEL) retry(drivers sets.Set[string]) {
	pods, err := pl.handle.SharedInformerFactory().Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		klog.Background().Error(err, "Could not list the pods that may use devices with new attributes")
		return
	}
	names := sets.List(drivers)
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && pod.Spec.SchedulerName == pl.handle.ProfileName() && pl.mayNeed(pod, names) {
			pl.activate(pod)
		}
	}
}

// mayNeed reports whether a pod may use devices of the drivers. A node set constraint of the pod's group may read the devices of a
// node although the pod has no claim.
func (pl *DynamicResourcesCEL) mayNeed(pod *v1.Pod, drivers []string) bool {
	if pod.Spec.SchedulingGroup != nil {
		return true
	}
	return (len(pod.Spec.ResourceClaims) > 0 || pl.resolver.WantsExtended(pod)) && pl.mayUse(pod, drivers, "")
}
