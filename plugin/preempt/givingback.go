// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/plugin/hold"
)

// A victim that is not bound yet is not deleted: upstream rejects it. That happens while its devices are being attached
// (KEP-5007). Upstream removes the reservation of the victim, and the claim stays allocated for the next try of the victim.
// That try is refused, because the devices are held. So nobody would deallocate the claim.

// giveBackTimeout limits the request that deallocates a claim.
const giveBackTimeout = 10 * time.Second

// giveBack deallocates the claims of victims that have no users. The scheduling cycle doesn't wait for the API server.
// A claim that was changed meanwhile is left alone: the API server refuses the write of an old version.
func (p *Preempter) giveBack(ctx context.Context, held *hold.Hold) {
	logger := klog.FromContext(ctx)
	for _, claim := range p.Holding.freedBy(held) {
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) > 0 || p.Holding.Resolver.Manager.ResourceClaims().GetPendingAllocation(claim.UID) != nil {
			continue
		}
		free := claim.DeepCopy()
		free.Status.Allocation, free.Status.Devices = nil, nil
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
			defer cancel()
			if _, err := p.Handle.ClientSet().ResourceV1().ResourceClaims(free.Namespace).UpdateStatus(ctx, free, metav1.UpdateOptions{}); err != nil {
				// The pod with the hold is tried again, and so is this.
				logger.V(4).Info("A claim without users was not deallocated", "resourceclaim", klog.KObj(free), "pod", klog.KObj(held.Pod), "err", err)
				return
			}
			logger.Info("A claim without users was deallocated for a pod for which its devices are held", "resourceclaim", klog.KObj(free), "pod", klog.KObj(held.Pod))
		}()
	}
}
