// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// What a scheduler has allocated and what it knows of that are two things: an answer can be lost, a watch can
// be late, and an earlier leader may have written last. See package indoubt.

// catchUpTimeout is for reading all claims from the API server.
const catchUpTimeout = 30 * time.Second

// catchUp reads what an earlier leader has allocated, before this one allocates for the first time.
func (pl *DynamicResourcesCEL) catchUp(ctx context.Context, pod *v1.Pod) *fwk.Status {
	if pl.watched.inDoubt == nil || pl.watched.inDoubt.IsCaughtUp() || !pl.asksForDevices(pod) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if err := pl.watched.inDoubt.CatchUp(ctx); err != nil {
		return fwk.AsStatus(err)
	}
	return nil
}

// inDoubtFrom are the devices that other claims may have. A claim may be given again what it may have: at
// most one of two writes of the same version is stored. If the pod has a second claim to allocate, that
// could get what the first one may have, so then nothing is exempt.
func (pl *DynamicResourcesCEL) inDoubtFrom(pod *v1.Pod) []resourceapi.DeviceRequestAllocationResult {
	if pl.watched.inDoubt == nil || !pl.watched.inDoubt.Any() {
		return nil
	}
	var own types.UID
	if claims, err := pl.unallocatedClaims(pod); err == nil && len(pl.withExtended(pod, claims)) == 1 && len(claims) == 1 {
		own = claims[0].UID
	}
	return pl.watched.inDoubt.From(pod, own, pl.activate)
}

func (pl *DynamicResourcesCEL) tellOfInDoubt(pod *v1.Pod) string {
	count := len(pl.inDoubtFrom(pod))
	if count == 0 {
		return ""
	}
	return fmt.Sprintf("%d devices are kept until it is known whether claims have them, of which the API server or the watch has not told yet", count)
}

// assumeNewer hands a claim that was read to the scheduler's list, unless that has it already.
func assumeNewer(claims fwk.ResourceClaimTracker) func(*resourceapi.ResourceClaim) error {
	return func(claim *resourceapi.ResourceClaim) error {
		if known, err := claims.Get(claim.Namespace, claim.Name); err == nil && known.ResourceVersion == claim.ResourceVersion {
			return nil
		}
		return claims.AssumeClaimAfterAPICall(claim)
	}
}
