// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"maps"
	"strconv"

	v1 "k8s.io/api/core/v1"

	"github.com/celset/celset/cel/device"
)

// Workloads number their pods with these labels. The first label that a pod has is its index.
var indexLabels = []string{
	"batch.kubernetes.io/job-completion-index", "leaderworkerset.sigs.k8s.io/worker-index", "apps.kubernetes.io/pod-index",
}

// Workloads of several groups number the groups with these labels.
var groupLabels = []string{"jobset.sigs.k8s.io/job-global-index", "leaderworkerset.sigs.k8s.io/group-index"}

// IndexOf returns the number of a pod in its workload. ok is false if the pod has none.
func IndexOf(pod *v1.Pod) (index int64, ok bool) { return numberIn(pod, indexLabels) }

func numberIn(pod *v1.Pod, labels []string) (int64, bool) {
	for _, key := range labels {
		if n, err := strconv.ParseInt(pod.Labels[key], 10, 64); err == nil && n >= 0 {
			return n, true
		}
	}
	return 0, false
}

// ComparePods orders the pods of a group: by the number of the group in its workload, by the index, and by name. Pods without a
// number come last.
func ComparePods(a, b *v1.Pod) int {
	for _, labels := range [][]string{groupLabels, indexLabels} {
		one, hasOne := numberIn(a, labels)
		other, hasOther := numberIn(b, labels)
		switch {
		case hasOne != hasOther && hasOne:
			return -1
		case hasOne != hasOther:
			return 1
		case one != other:
			return cmp.Compare(one, other)
		}
	}
	return cmp.Compare(a.Name, b.Name)
}

// Pods reports whether the expressions read the pods that nodes are for ([Group.Pods], [Node.Running]).
func (r *Reading) Pods() bool { return r.pods.Any }

// OfPod returns a pod with the properties that the expressions read.
func (r *Reading) OfPod(pod *v1.Pod) (of device.OfPod) {
	of.Labels = map[string]string{}
	for key, value := range pod.Labels {
		if r.pods.AllLabels || r.pods.Labels[key] {
			of.Labels[key] = value
		}
	}
	if index, ok := IndexOf(pod); ok && r.pods.Index {
		of.Index = &index
	}
	return of
}

// labelsOfKind returns the pod's labels that filters or expressions may read.
func (r *Reading) labelsOfKind(pod *v1.Pod) map[string]string {
	labels := maps.Clone(pod.Labels)
	for _, name := range ofOnePod {
		if !r.pods.AllLabels && !r.pods.Labels[name] {
			delete(labels, name)
		}
	}
	return labels
}
