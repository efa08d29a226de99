// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// entry is an entry of the scheduling queue: a pod, or a group with one of its pods.
type entry struct {
	pod *v1.Pod
	// key is the UID of the pod, or the namespace and the name of the group.
	key types.UID
	// activate moves the pod to the active queue.
	activate func(*v1.Pod)
}

func newEntry(pod *v1.Pod, activate func(*v1.Pod)) entry { return entry{pod, keyOf(pod), activate} }

func keyOf(pod *v1.Pod) types.UID {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return types.UID(pod.Namespace + "/" + *group.PodGroupName)
	}
	return pod.UID
}

// minimal returns the entry with a copy of the pod that has only the fields that the queue needs, and the priority.
func (e entry) minimal() entry {
	e.pod = &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.pod.Namespace, Name: e.pod.Name, UID: e.pod.UID},
		Spec:       v1.PodSpec{SchedulingGroup: e.pod.Spec.SchedulingGroup, Priority: e.pod.Spec.Priority},
	}
	return e
}
