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

// Upstream does not delete a victim that is not bound yet, for example while devices are being attached (KEP-5007). It sends
// the victim back to the scheduling queue and removes its reservation, but the claim stays allocated for the victim's next
// attempt. PreFilter refuses that attempt, because the claim must be freed. So without giveBack the claim would stay allocated.

// giveBackTimeout is the timeout of the request that deallocates a claim.
const giveBackTimeout = 10 * time.Second

// giveBack starts to deallocate, in the background, those claims of the hold's victims that have no users. If a claim was
// changed meanwhile, the API server rejects the write.
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
				// The deallocation is repeated when the scheduler tries the preemptor again.
				logger.V(4).Info("Could not deallocate a claim without users", "resourceclaim", klog.KObj(free), "pod", klog.KObj(held.Pod), "err", err)
				return
			}
			logger.Info("Deallocated a claim without users, because its devices are held for a pod", "resourceclaim", klog.KObj(free), "pod", klog.KObj(held.Pod))
		}()
	}
}
