// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/plugin/hold"
)

// A victim that is not bound yet is not deleted: upstream rejects it. That happens while its devices are being attached
// (KEP-5007). Upstream removes the reservation of the victim, and leaves the devices to its claim, for the next try of the
// victim. That try is refused, because the devices are held. So nobody would free the claim.

// giveBack deallocates the claims without users that are to be freed for a hold. The scheduling cycle doesn't wait for
// that. A claim that was changed meanwhile stays as it is: its version has to be the one without users.
func (pl *DynamicResourcesCEL) giveBack(ctx context.Context, held *hold.Hold) {
	logger := klog.FromContext(ctx)
	for _, claim := range pl.freedBy(held) {
		if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) > 0 || pl.claims.ResourceClaims().GetPendingAllocation(claim.UID) != nil {
			continue
		}
		free := claim.DeepCopy()
		free.Status.Allocation, free.Status.Devices = nil, nil
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), conditionTimeout)
			defer cancel()
			_, err := pl.handle.ClientSet().ResourceV1().ResourceClaims(free.Namespace).UpdateStatus(ctx, free, metav1.UpdateOptions{})
			logger.Info("A claim that nobody uses gives back devices that are held for a pod", "resourceclaim", klog.KObj(free), "pod", klog.KObj(held.Pod), "err", err)
		}()
	}
}
