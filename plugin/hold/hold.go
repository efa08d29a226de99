// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
)

// End is how a hold ended.
type End string

const (
	// Bound means that the pod is bound to the node of the hold.
	Bound End = "bound"
	// Moved means that the pod is bound to another node.
	Moved End = "moved"
	// Deleted means that the pod is gone, is being deleted, or has ended.
	Deleted End = "deleted"
	// ClaimDeleted means that a claim for which devices were held is gone or being deleted.
	ClaimDeleted End = "claim_deleted"
	// TimedOut means that the pod could not be bound in time.
	TimedOut End = "timeout"
	// Broken means that a pod of a higher priority has taken a device, or is to get it.
	Broken End = "broken"
	// Lost means that the pod doesn't fit on the node although the victims have gone.
	Lost End = "lost"
	// Unrecorded means that the condition could not be written, so that no pod was evicted.
	Unrecorded End = "unrecorded"
)

// Ends has all ends.
var Ends = []End{Bound, Moved, Deleted, ClaimDeleted, TimedOut, Broken, Lost, Unrecorded}

// isFinal reports whether no further try can follow.
func (e End) isFinal() bool { return e == Bound || e == Moved || e == Deleted }

const (
	// MaxTries is the number of holds for one pod after which nothing is evicted for it any more.
	MaxTries = 6
	// firstBackOff is the time between the end of the first hold and the second try. It doubles with each try.
	firstBackOff = 10 * time.Second
	// MaxJoined limits the number of pods that are evicted during one hold because they began to use claims of its victims.
	MaxJoined = 6
	// untilKnown is the time that informers may be late.
	untilKnown = 30 * time.Second
	// firstResume and lastResume limit how soon failed evictions are repeated.
	firstResume, lastResume = time.Second, time.Minute
)

// backOff returns the time between the end of a try and the next try.
func backOff(try int) time.Duration { return firstBackOff << min(max(try-1, 0), MaxTries) }

// Claim is a claim for which devices are held.
type Claim struct {
	// UID and Name are those of the claim. UID is empty for extended resources: their claim doesn't exist yet.
	UID  types.UID
	Name string
	// Devices are the results of an allocation, without names of requests.
	Devices []resourceapi.DeviceRequestAllocationResult
}

// Hold is a set of devices that is held for a pod.
type Hold struct {
	Pod    *v1.Pod
	Node   string
	Claims []Claim
	// Victims are the UIDs of the pods that are evicted.
	Victims []types.UID
	// Joined is the number of victims that began to use a claim of another victim after the hold had begun.
	Joined int
	// Frees are the UIDs of the claims that give back devices when the victims have gone.
	Frees []types.UID
	// Begun is the time at which the hold began, by the clock of its scheduler. It orders holds of different schedulers.
	Begun time.Time
	// Until is the time at which the hold ends.
	Until time.Time
	// Try counts the holds of the pod from 1. Keep sets it if it is 0.
	Try int
	// Evicted is the number of pods that were evicted, for all that is known.
	Evicted int
	// Foreign is set for a hold of another scheduler. Only that scheduler ends it.
	Foreign bool
	// Retry has the pod tried again. It may be nil.
	Retry func()
}

// Devices returns the devices of all claims.
func (h *Hold) Devices() []resourceapi.DeviceRequestAllocationResult {
	var devices []resourceapi.DeviceRequestAllocationResult
	for i := range h.Claims {
		devices = append(devices, h.Claims[i].Devices...)
	}
	return devices
}

// isFor reports whether devices are held for a claim.
func (h *Hold) isFor(claim types.UID) bool {
	return claim != "" && slices.ContainsFunc(h.Claims, func(c Claim) bool { return c.UID == claim })
}

// without returns the hold without the devices for some claims.
func (h *Hold) without(claims []types.UID) Hold {
	rest := *h
	rest.Claims = slices.DeleteFunc(slices.Clone(h.Claims), func(c Claim) bool { return c.UID != "" && slices.Contains(claims, c.UID) })
	return rest
}

// hasAny reports whether a whole device is among others. Shares of one device are not in each other's way.
func (h *Hold) hasAny(devices []structured.DeviceID) bool {
	return slices.ContainsFunc(h.Claims, func(c Claim) bool {
		return slices.ContainsFunc(c.Devices, func(r resourceapi.DeviceRequestAllocationResult) bool {
			return isWhole(&r) && slices.Contains(devices, structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		})
	})
}

// wholeDevices returns the devices that are in use as a whole.
func wholeDevices(results []resourceapi.DeviceRequestAllocationResult) []structured.DeviceID {
	var ids []structured.DeviceID
	for i := range results {
		if r := &results[i]; isWhole(r) {
			ids = append(ids, structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		}
	}
	return ids
}

func isWhole(r *resourceapi.DeviceRequestAllocationResult) bool {
	return r.ShareID == nil && (r.AdminAccess == nil || !*r.AdminAccess)
}

// IsOver reports whether a pod needs no hold any more, and how its hold ends.
func IsOver(pod *v1.Pod, node string) (how End, over bool) {
	switch {
	case pod.DeletionTimestamp != nil, pod.Status.Phase == v1.PodSucceeded, pod.Status.Phase == v1.PodFailed:
		return Deleted, true
	case pod.Spec.NodeName == "":
		return "", false
	case pod.Spec.NodeName == node:
		return Bound, true
	default:
		return Moved, true
	}
}
