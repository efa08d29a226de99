// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"

	"github.com/celset/celset/plugin/cycle"
)

// PostFilter runs upstream's PostFilter, and then preemption for devices. If the pod still fits nowhere, it adds explanations:
// failed expressions, the nearest miss, held devices and pending writes.
func (pl *DynamicResourcesCEL) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if _, err := state.Read(dynamicresources.Name); err != nil && pl.exchange != nil {
		pl.turns.Refused(pod)
		return pl.holds.RefusedBefore(pod, cycle.ClaimsIn(state))
	}
	if why := pl.keepsDevices(ctx, pod); why != "" {
		return nil, fwk.NewStatus(fwk.Unschedulable, why)
	}
	c := cycle.ClaimsIn(state)
	if c == nil {
		c = &cycle.PodClaims{}
	}
	pl.fillPassedOver(ctx, state, pod, nodes, c)
	result, status := pl.DynamicResources.PostFilter(ctx, state, pod, nodes)
	if status.Code() != fwk.Unschedulable || status.Message() != "" {
		return result, status
	}
	preempted, said, did := pl.preempter.Preempt(ctx, state, pod, nodes, c)
	if did && said.IsSuccess() {
		return preempted, said
	}
	var texts []string
	if c.Ours != nil {
		texts = append(texts, c.Ours.Failed.String(), pl.misses.Text(ctx, c, pod, nodes))
	}
	texts = append(texts, pl.holds.Text(pod, c, nodes), pl.pendingText(pod, c))
	if did {
		result, status = preempted, said
		texts = append(texts, said.Message())
	}
	texts = slices.DeleteFunc(texts, func(text string) bool { return text == "" })
	if len(texts) > 0 {
		status = fwk.NewStatus(status.Code(), strings.Join(texts, "; "))
	}
	return result, status
}

// pendingText returns a message with the number of devices that pending writes of other claims reserve, or "" for none.
func (pl *DynamicResourcesCEL) pendingText(pod *v1.Pod, c *cycle.PodClaims) string {
	pending := len(pl.writes.InUse(pod, c.Own(), pl.activate))
	if pending == 0 {
		return ""
	}
	return fmt.Sprintf("%d devices are reserved until the API server or the watch confirms their allocations", pending)
}
