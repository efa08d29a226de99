// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator/extended"
	"github.com/celset/celset/allocator/podclaims"
	"github.com/celset/celset/internal/clusterstate"
)

// before makes the scheduler's checks of the pod and its claims that don't depend on a node, and adds reasons for a rejection
// to s. The error is one that would end the scheduling of the pod on all nodes.
func (q *question) before(s *Scheduling) error {
	s.Refused = append(s.Refused, q.subject.Refused...)
	var uid types.UID
	if pod := q.subject.Pod; pod != nil {
		uid = pod.UID
		q.beforePod(s, pod)
	}
	if q.subject.Missing != nil {
		return q.subject.Missing
	}
	checker := podclaims.Checker{
		WorkloadClaims: true, PrioritizedList: q.Features.PrioritizedList,
		BindingConditions: q.Features.DeviceBindingAndStatus, BindingTimeout: q.Args.BindingTimeout.Duration,
	}
	for _, claim := range q.subject.Claims {
		if err := checker.Attached(claim, uid, time.Now()); err != nil && !q.runs() {
			s.Refused = append(s.Refused, err.Error())
		}
	}
	pending := slices.DeleteFunc(q.subject.Pending(), func(claim *resourceapi.ResourceClaim) bool { return claim.Name == extended.ClaimName })
	if err := podclaims.Bounded(pending); err != nil {
		return err
	}
	return checker.Classes(pending, q.state.Classes())
}

// runs reports whether the subject is a pod that is already assigned to a node.
func (q *question) runs() bool { return q.subject.Pod != nil && q.subject.Pod.Spec.NodeName != "" }

func (q *question) beforePod(s *Scheduling, pod *corev1.Pod) {
	if q.runs() {
		return
	}
	if q.state.RunningUnknown != "" {
		s.NotChecked = append(s.NotChecked, "how much CPU, memory and which ports other pods use: "+q.state.RunningUnknown)
	}
	if fields := Unchecked(pod); len(fields) > 0 {
		s.NotChecked = append(s.NotChecked, "whether nodes satisfy "+strings.Join(fields, ", "))
	}
	if !q.OfGroup && pod.Spec.SchedulingGroup != nil && pod.Spec.SchedulingGroup.PodGroupName != nil {
		q.beforeMember(s, pod, *pod.Spec.SchedulingGroup.PodGroupName)
	}
}

// Unchecked returns the fields of a pod that restrict its nodes but that this package does not evaluate.
func Unchecked(pod *corev1.Pod) (fields []string) {
	if slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }) {
		fields = append(fields, "spec.volumes")
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		fields = append(fields, "spec.affinity.podAffinity")
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		fields = append(fields, "spec.affinity.podAntiAffinity")
	}
	if slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.WhenUnsatisfiable == corev1.DoNotSchedule }) {
		fields = append(fields, "spec.topologySpreadConstraints")
	}
	return fields
}

// beforeMember makes the scheduler's checks of the pod's group, and adds the results to s.
func (q *question) beforeMember(s *Scheduling, pod *corev1.Pod, name string) {
	group := q.state.Group(pod.Namespace, name)
	if group == nil {
		if q.state.HasCluster {
			s.Refused = append(s.Refused, fmt.Sprintf("spec.schedulingGroup.podGroupName: there is no PodGroup %q%s", name, q.state.NearGroup(pod.Namespace, name)))
		}
		return
	}
	s.Refused = append(s.Refused, GroupRefusals(q.state, group)...)
	if gang, pods := group.Spec.SchedulingPolicy.Gang, membersOf(q.state, group); gang != nil && len(pods) < int(gang.MinCount) {
		s.Refused = append(s.Refused, fmt.Sprintf("PodGroup %s: spec.schedulingPolicy.gang.minCount is %d, but the number of pods of the group is %d", klog.KObj(group), gang.MinCount, len(pods)))
	}
	s.NotChecked = append(s.NotChecked, fmt.Sprintf("the other pods of PodGroup %s, which are placed together: for these, use podgroup/%s", klog.KObj(group), group.Name))
}

// membersOf returns the pods of a group, without pods that have succeeded or failed.
func membersOf(state *clusterstate.State, group *schedulingapi.PodGroup) (pods []*corev1.Pod) {
	for _, pod := range state.Pods {
		if state.GroupOf(pod) == group && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			pods = append(pods, pod)
		}
	}
	return pods
}

// GroupRefusals returns the reasons why the scheduler rejects the group as a whole. All pods must have the same scheduler, the
// same preemption policy, and the priority of the group.
func GroupRefusals(state *clusterstate.State, group *schedulingapi.PodGroup) (refused []string) {
	pods := membersOf(state, group)
	differs := func(field string, value func(*corev1.Pod) string, want string) {
		for _, pod := range pods {
			if got := value(pod); got != want {
				refused = append(refused, fmt.Sprintf("PodGroup %s: %s is %s in pod %s, but must be %s in all pods of the group", klog.KObj(group), field, got, pod.Name, want))
				return
			}
		}
	}
	if len(pods) == 0 {
		return nil
	}
	scheduler := func(pod *corev1.Pod) string { return fmt.Sprintf("%q", pod.Spec.SchedulerName) }
	differs("spec.schedulerName", scheduler, scheduler(pods[0]))
	differs("spec.priority", func(pod *corev1.Pod) string { return fmt.Sprint(corev1helpers.PodPriority(pod)) }, fmt.Sprint(ptr.Deref(group.Spec.Priority, 0)))
	policy := func(pod *corev1.Pod) string {
		return string(ptr.Deref(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority))
	}
	differs("spec.preemptionPolicy", policy, policy(pods[0]))
	return refused
}
