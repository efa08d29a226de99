// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/internal/noderesources"
)

// Elsewhere is the reason for a node that the pod's node selector or affinity excludes.
const Elsewhere = "the pod's node selector or affinity does not match"

// excluded returns a reason, unrelated to devices, why the pod can't use the node. It is empty if the pod can use the node.
func (q *question) excluded(ctx context.Context, node *corev1.Node) (string, error) {
	if reason, err := q.subject.ExclusionFrom(node); reason != "" || err != nil {
		return reason, err
	}
	pod := q.subject.Pod
	if pod == nil {
		return "", nil
	}
	if reason, err := excludedForPod(ctx, pod, node); reason != "" || err != nil || q.runs() {
		return reason, err
	}
	room := FreeOf(q.state, node)
	if room == nil {
		return "", nil
	}
	return strings.Join(room.Lacks(noderesources.Requests(pod)), ", "), nil
}

// FreeOf returns the free resources of a node. It is nil for a node in a file that specifies no amounts.
func FreeOf(state *clusterstate.State, node *corev1.Node) *noderesources.FreeResources {
	if len(node.Status.Allocatable) == 0 && !state.HasCluster {
		return nil
	}
	room := noderesources.Free(node, state.On(node.Name))
	room.Delegate(state.HasClassFor)
	return room
}

func excludedForPod(ctx context.Context, pod *corev1.Pod, node *corev1.Node) (string, error) {
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		return "the pod is on node " + pod.Spec.NodeName, nil
	}
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil {
		return "", fmt.Errorf("pod %s: node affinity: %w", klog.KObj(pod), err)
	}
	if !matches {
		return Elsewhere, nil
	}
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append([]corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}, taints...)
	}
	repels := func(taint *corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule }
	if taint, found := corev1helpers.FindMatchingUntoleratedTaint(klog.FromContext(ctx), taints, pod.Spec.Tolerations, repels, false); found {
		return fmt.Sprintf("the pod does not tolerate the taint %s", taint.ToString()), nil
	}
	return "", nil
}
