// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/clusterstate"
)

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// runningPods names the pods that run on a node, of any group. They are part of the reason why the node has no free space.
func (q *question) runningPods(node int) string {
	there := func(pod *corev1.Pod) bool { return pod.Spec.NodeName == q.search.Nodes[node].Name && !hasEnded(pod) }
	return nodeset.Standing(func(yield func(*corev1.Pod) bool) {
		for _, pod := range q.state.Pods {
			if there(pod) && !yield(pod) {
				return
			}
		}
	}, q.group.Namespace)
}

// findPods finds the pods of the group, and counts the pending and the scheduled ones.
func (q *question) findPods() error {
	for _, pod := range q.state.Pods {
		if q.state.GroupOf(pod) != q.group || hasEnded(pod) {
			continue
		}
		if pod.Spec.NodeName != "" {
			q.scheduled++
		}
		if pod.DeletionTimestamp != nil {
			continue
		}
		subject, err := q.state.SubjectOf(pod)
		if err != nil {
			return err
		}
		if pod.Spec.NodeName == "" {
			q.waiting = append(q.waiting, subject)
		} else {
			q.running = append(q.running, subject)
		}
	}
	q.Waiting = len(q.waiting)
	total := q.Waiting + q.scheduled
	if gang := q.group.Spec.SchedulingPolicy.Gang; gang != nil && total < int(gang.MinCount) {
		q.Refused = append(q.Refused, fmt.Sprintf("spec.schedulingPolicy.gang.minCount is %d, but the number of pods of the group is %d", gang.MinCount, total))
	}
	if total == 0 {
		return errors.New("no pod refers to the group in spec.schedulingGroup.podGroupName")
	}
	return nil
}

// compile resolves the constraint's definition, compiles it, and lists the nodes that may be in a set.
func (q *question) compile(ctx context.Context, name string) error {
	own, err := v1alpha1.GroupNodeSet(q.group)
	if err != nil {
		return err
	}
	var claims []*resourceapi.ResourceClaim
	shared := ""
	for _, subject := range slices.Concat(q.waiting, q.running) {
		for _, claim := range subject.Claims {
			switch {
			case claim.Name == extended.ClaimName:
				continue
			case slices.Contains(claims, claim) && claim.Status.Allocation == nil:
				shared = claim.Name
			}
			claims = append(claims, claim)
		}
	}
	q.search.Group = &nodeset.Group{Namespace: q.group.Namespace, Name: q.group.Name}
	if q.search.Constraint, err = v1alpha1.ResolveNodeSet(q.group, own, name, claims, q.state.Classes()); err != nil {
		return err
	}
	constraint := q.search.Constraint
	q.Defined = constraint.Source.String()
	problem, err := nodeset.NewProblem(q.search.Group, 0, 1)
	if err != nil {
		return err
	}
	prepared, err := q.prepare(ctx, problem)
	if err != nil {
		return err
	}
	q.reads = nodeset.ReadingOf(prepared)
	if err := q.search.Read(q.reads); err != nil {
		return err
	}
	if q.reads.Devices() && shared != "" {
		return fmt.Errorf("ResourceClaim %s/%s is used by several pods, but the constraint reads the devices of each pod: use a ResourceClaimTemplate", q.group.Namespace, shared)
	}
	onNode := map[string][]*resourceapi.ResourceSlice{}
	for _, slice := range q.slices {
		onNode[ptr.Deref(slice.Spec.NodeName, "")] = append(onNode[ptr.Deref(slice.Spec.NodeName, "")], slice)
	}
	for _, node := range q.nodes {
		q.search.Nodes = append(q.search.Nodes, nodeset.Node{Name: node.Name, Labels: node.Labels, Slices: onNode[node.Name], Free: constraint.PodsPerNode})
	}
	q.why = make([]string, len(q.search.Nodes))
	q.layout = nodeset.LayoutOf(ctx, prepared, q.search.Nodes)
	return nil
}

// findRunning fills q.Running with the nodes that run pods of the group.
func (q *question) findRunning() (err error) {
	on := map[string][]*clusterstate.Subject{}
	for _, subject := range q.running {
		name := subject.Pod.Spec.NodeName
		if on[name] = append(on[name], subject); !slices.ContainsFunc(q.search.Nodes, func(n nodeset.Node) bool { return n.Name == name }) {
			return fmt.Errorf("pod %s of the group runs on node %s, which is not available to the group: make the node available, or delete the pod", subject.Pod.Name, name)
		}
	}
	for i := range q.search.Nodes {
		n := &q.search.Nodes[i]
		if n.Placed = len(on[n.Name]) > 0; !n.Placed {
			continue
		}
		n.Free -= len(on[n.Name])
		for _, subject := range on[n.Name] {
			n.Pods = append(n.Pods, subject.Pod)
			if q.reads.Pods() {
				n.Running = append(n.Running, q.reads.OfPod(subject.Pod))
			}
		}
		m := Member{Node: n.Name}
		for _, subject := range on[n.Name] {
			m.Pods = append(m.Pods, subject.Pod.Name)
		}
		q.Running = append(q.Running, m)
		if q.reads.Devices() {
			if n.Has, err = q.reads.SetOf(q.has(on[n.Name]...), nil); err != nil {
				return fmt.Errorf("node %s, on which a pod of the group runs: %w", n.Name, err)
			}
		}
	}
	return nil
}

// has returns the devices that are allocated to the pods' claims.
func (q *question) has(subjects ...*clusterstate.Subject) (devices []allocator.AllocatedDevice) {
	for _, subject := range subjects {
		for _, claim := range subject.Claims {
			for i := range ptr.Deref(claim.Status.Allocation, resourceapi.AllocationResult{}).Devices.Results {
				devices = append(devices, nodeset.Published(&claim.Status.Allocation.Devices.Results[i], q.slices))
			}
		}
	}
	return devices
}
