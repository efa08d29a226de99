// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/clusterstate"
)

// overview answers the question [Overview].
func (a *Answers) overview(ctx context.Context, _ struct{}) (*OverviewAnswer, error) {
	current, err := a.current(ctx)
	if err != nil {
		return nil, err
	}
	// Later questions use the result, too, so the end of this question must not interrupt the computation.
	current.overview.Do(func() { current.nodes, current.nodesError = a.summaries(context.WithoutCancel(ctx), current.state) })
	if current.nodesError != nil {
		return nil, current.nodesError
	}
	return &OverviewAnswer{
		Origin: current.Origin, Revision: current.Revision, Live: current.Live,
		Warnings: slices.Concat(current.Warnings, current.state.Warnings),
		Machines: machines(), Nodes: current.nodes, Waiting: waiting(current.state), Groups: groups(current.state), Placements: a.placementsOf(current),
	}, nil
}

// summaries counts the devices of each node.
func (a *Answers) summaries(ctx context.Context, state *clusterstate.State) ([]NodeSummary, error) {
	problem := state.Problem(nil, a.Features)
	allocator, err := problem.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	owners, unusable := state.Owners(), unusableDevices(state, a.Features.DeviceTaints)
	summaries := make([]NodeSummary, 0, len(state.Nodes()))
	for _, node := range state.Nodes() {
		ids, err := allocator.NodeDevices(node)
		if err != nil {
			return nil, err
		}
		summary := NodeSummary{Name: node.Name, Drivers: []string{}, Devices: len(ids)}
		drivers := map[string]bool{}
		for _, id := range ids {
			drivers[id.Driver.String()] = true
			if slices.ContainsFunc(owners[id], func(o clusterstate.Owner) bool { return !o.AdminAccess }) {
				summary.Allocated++
			}
			if unusable[id] {
				summary.Unusable++
			}
		}
		summary.Drivers = append(summary.Drivers, slices.Sorted(maps.Keys(drivers))...)
		summaries = append(summaries, summary)
	}
	return summaries, nil
}

// unusableDevices returns the devices with a taint that prevents allocation.
func unusableDevices(state *clusterstate.State, withTaints bool) map[structured.DeviceID]bool {
	unusable := map[structured.DeviceID]bool{}
	if !withTaints {
		return unusable
	}
	for _, slice := range state.Slices(true) {
		for i := range slice.Spec.Devices {
			if device := &slice.Spec.Devices[i]; slices.ContainsFunc(device.Taints, keepsAway) {
				unusable[structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name)] = true
			}
		}
	}
	return unusable
}

func keepsAway(taint resourceapi.DeviceTaint) bool {
	return taint.Effect == resourceapi.DeviceTaintEffectNoSchedule || taint.Effect == resourceapi.DeviceTaintEffectNoExecute
}

// waiting lists the pods without a node that need devices, and the claims without devices. It leaves out the claims of these pods.
func waiting(state *clusterstate.State) []Waiting {
	result, used := []Waiting{}, map[*resourceapi.ResourceClaim]bool{}
	for _, pod := range state.Pods {
		if pod.Spec.NodeName != "" || isOver(pod) {
			continue
		}
		subject, err := state.SubjectOf(pod)
		if err == nil && len(subject.Claims) == 0 && subject.Missing == nil {
			continue
		}
		one := Waiting{Subject: clusterstate.PodKind + "/" + pod.Name, Namespace: pod.Namespace, Since: since(pod)}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				one.Message = condition.Message
			}
		}
		if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
			one.Group = *group.PodGroupName
		}
		result = append(result, one)
		if subject != nil {
			for _, claim := range subject.Claims {
				used[claim] = true
			}
		}
	}
	for _, claim := range state.Claims {
		if claim.Status.Allocation == nil && claim.DeletionTimestamp == nil && !used[claim] {
			result = append(result, Waiting{Subject: clusterstate.ClaimKind + "/" + claim.Name, Namespace: claim.Namespace, Since: since(claim)})
		}
	}
	slices.SortStableFunc(result, func(a, b Waiting) int {
		return strings.Compare(a.Namespace+"/"+a.Subject, b.Namespace+"/"+b.Subject)
	})
	return result
}

func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func since(object metav1.Object) string {
	if created := object.GetCreationTimestamp(); !created.IsZero() {
		return created.UTC().Format(time.RFC3339)
	}
	return ""
}

func groups(state *clusterstate.State) []GroupSummary {
	result, at := make([]GroupSummary, len(state.Groups)), map[*schedulingapi.PodGroup]*GroupSummary{}
	for i, group := range state.Groups {
		result[i] = GroupSummary{Name: group.Name, Namespace: group.Namespace}
		at[group] = &result[i]
		if name, refers := v1alpha1.NodeSetReference(group); refers {
			result[i].Constraint = v1alpha1.AttributeDomain + "/" + name
		}
		for _, condition := range group.Status.Conditions {
			if condition.Status == metav1.ConditionFalse {
				result[i].Message = condition.Message
				break
			}
		}
	}
	if len(result) == 0 {
		return result
	}
	for _, pod := range state.Pods {
		group := at[state.GroupOf(pod)]
		switch {
		case group == nil || isOver(pod):
		case pod.Spec.NodeName != "":
			group.Running++
		default:
			group.Waiting++
		}
	}
	return result
}

func (a *Answers) placementsOf(current *current) []PlacementSummary {
	result := []PlacementSummary{}
	if current.Hub == nil {
		return result
	}
	for _, object := range current.Hub.Placements() {
		summary := PlacementSummary{Name: object.Name, Namespace: object.Namespace, Selected: current.Hub.Selected(object)}
		for _, condition := range object.Status.Conditions {
			if condition.Type == clusterv1beta1.PlacementConditionSatisfied {
				summary.Satisfied, summary.Message = string(condition.Status), condition.Message
			}
		}
		result = append(result, summary)
	}
	return result
}
