// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"cmp"
	"fmt"
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

// checkPods returns an error if the pods have too many labels that the expression reads, or if their labels take too much memory as
// parts of all candidates.
func (p *Problem) checkPods(nodes []Node) error {
	if !p.ReadsPods {
		return nil
	}
	kinds := make([]int, len(p.Pods))
	for kind := range p.Pods {
		if kinds[kind] = bytesOf(&p.Pods[kind]); len(p.Pods[kind].Labels) > device.MaxLabels {
			return p.failed(nil, fmt.Sprintf("a pod of the group has more than %d labels: read labels of pods by key in the expression", device.MaxLabels))
		}
	}
	bytes := 0
	for i := range nodes {
		n, running := &nodes[i], 0
		for j := range n.Running {
			if running += bytesOf(&n.Running[j]); len(n.Running[j].Labels) > device.MaxLabels {
				return p.failed(nil, fmt.Sprintf("node %s runs a pod of the group with more than %d labels: read labels of pods by key in the expression", n.Name, device.MaxLabels))
			}
		}
		for j := range p.requests {
			if of := &p.requests[j]; of.placed == n.Placed {
				bytes += running
				for kind, count := range of.load {
					bytes += count * kinds[kind]
				}
			}
		}
		for kind, sets := range n.Sets {
			bytes += len(sets) * kinds[kind]
		}
		if bytes > MaxSetBytes {
			return p.failed(nil, fmt.Sprintf("the labels of pods that the expression reads take more than %d MiB for all nodes: read fewer labels of pods, or narrow the nodes with a nodeSelector", MaxSetBytes>>20))
		}
	}
	return nil
}

// bytesOf returns the approximate size of a pod in the value of n.pods.
func bytesOf(pod *device.OfPod) int {
	bytes := 16
	for key, value := range pod.Labels {
		bytes += len(key) + len(value) + 6
	}
	return bytes
}
