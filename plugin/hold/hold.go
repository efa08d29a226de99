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

// End is the reason for the end of a hold.
type End string

const (
	// Bound means that the pod was bound to the node of the hold.
	Bound End = "bound"
	// Moved means that the pod was bound to another node.
	Moved End = "moved"
	// Deleted means that the pod has ended, was deleted, or is being deleted.
	Deleted End = "deleted"
	// ClaimDeleted means that a claim of the hold was deleted or is being deleted.
	ClaimDeleted End = "claim_deleted"
	// TimedOut means that the pod was not bound in time.
	TimedOut End = "timeout"
	// Broken means that a pod of a higher priority has got a held device, or holds it now.
	Broken End = "broken"
	// Lost means that the pod won't get the devices: it doesn't fit on the node, or another pod uses the devices.
	Lost End = "lost"
	// Unrecorded means that the hold could not be written to the condition, so no pod was evicted.
	Unrecorded End = "unrecorded"
)

// Ends lists all values of End.
var Ends = []End{Bound, Moved, Deleted, ClaimDeleted, TimedOut, Broken, Lost, Unrecorded}

// isFinal reports whether the pod needs no further try after this end.
func (e End) isFinal() bool { return e == Bound || e == Moved || e == Deleted }

const (
	// MaxTries is the maximum number of holds that evict pods for one pod.
	MaxTries = 6
	// firstBackOff is the time between the end of the first hold and the second try. It doubles with each try.
	firstBackOff = 10 * time.Second
	// MaxJoined is the maximum number of pods that become victims of one hold because they began to use claims of its victims.
	MaxJoined = 6
	// untilKnown is the assumed maximum delay of informers.
	untilKnown = 30 * time.Second
	// firstResume and lastResume are the shortest and the longest delay before evictions that failed are repeated.
	firstResume, lastResume = time.Second, time.Minute
)

// backOff returns the time between the end of a try and the next try. try counts from 1.
func backOff(try int) time.Duration { return firstBackOff << min(max(try-1, 0), MaxTries) }

// Claim is a claim of a hold, with the devices held for it.
type Claim struct {
	// UID and Name identify the claim. UID is empty for extended resources, because their claim doesn't exist yet.
	UID  types.UID
	Name string
	// Devices are the devices of the allocation that was found, without names of requests.
	Devices []resourceapi.DeviceRequestAllocationResult
}

// Hold is a set of devices reserved for a pod.
type Hold struct {
	Pod    *v1.Pod
	Node   string
	Claims []Claim
	// Victims are the UIDs of the pods that are evicted for Pod.
	Victims []types.UID
	// Joined counts the victims that were added because they began to use a claim of another victim during the hold.
	Joined int
	// Frees are the UIDs of the victims' claims. They must be deallocated before the devices are free.
	Frees []types.UID
	// Began is the start of the hold by the clock of the scheduler that began it. It orders the holds of different schedulers.
	Began time.Time
	// Until is the time at which the hold ends.
	Until time.Time
	// Try is the number of this hold among the holds of Pod, from 1. [Holds.Begin] sets it if it is 0.
	Try int
	// Evicted is the number of victims evicted so far. This process may not know the evictions of an earlier process.
	Evicted int
	// Foreign is true for a hold of another scheduler. Only that scheduler ends it.
	Foreign bool
	// Retry activates Pod in the scheduling queue. It may be nil.
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

// isFor reports whether the hold has devices for the claim.
func (h *Hold) isFor(claim types.UID) bool {
	return claim != "" && slices.ContainsFunc(h.Claims, func(c Claim) bool { return c.UID == claim })
}

// without returns a copy of the hold without the given claims and their devices.
func (h *Hold) without(claims []types.UID) Hold {
	rest := *h
	rest.Claims = slices.DeleteFunc(slices.Clone(h.Claims), func(c Claim) bool { return c.UID != "" && slices.Contains(claims, c.UID) })
	return rest
}

// hasAny reports whether the hold reserves one of the devices as a whole. Shares of one device don't conflict.
func (h *Hold) hasAny(devices []structured.DeviceID) bool {
	return slices.ContainsFunc(h.Claims, func(c Claim) bool {
		return slices.ContainsFunc(c.Devices, func(r resourceapi.DeviceRequestAllocationResult) bool {
			return isWhole(&r) && slices.Contains(devices, structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		})
	})
}

// wholeDevices returns the devices that the results allocate as a whole, without shares and partitions.
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

// IsOver reports whether a pod no longer needs its hold on the node, and how the hold then ends.
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
