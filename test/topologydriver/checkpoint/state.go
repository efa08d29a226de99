// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// A State holds the prepared claims. It is immutable; With and Without return changed copies.
type State struct {
	// Claims maps the UIDs of all prepared claims to their data.
	Claims map[types.UID]Claim `json:"claims"`
}

// A Claim is a prepared claim. Name and namespace are only for messages.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Devices are the devices of this driver that the claim has, at least one, in the order of the allocation.
	Devices []Device `json:"devices"`
}

// A Device is a device, or a share of a device, that a claim has.
type Device struct {
	// Request is the request in the allocation: "request", or "request/subrequest".
	Request string `json:"request"`
	Pool    string `json:"pool"`
	Name    string `json:"name"`
	// Admin is set if the claim has admin access to the device, so that other claims may use it, too.
	Admin bool `json:"admin,omitempty"`
	// Share is the ID of the share in the allocation. It is empty if the claim has the whole device.
	Share types.UID `json:"share,omitempty"`
	// Attributes are the attributes of the device at the time of the preparation. Published attributes may change later.
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes,omitempty"`
	// Capacity is, for a share, the capacity that the claim consumes. Otherwise it is the capacity of the device at the time of
	// the preparation.
	Capacity map[resourceapi.QualifiedName]resource.Quantity `json:"capacity,omitempty"`
}

// With returns a copy of the state, with the claim added or replaced.
func (s State) With(uid types.UID, claim Claim) State {
	claims := maps.Clone(s.Claims)
	if claims == nil {
		claims = map[types.UID]Claim{}
	}
	claims[uid] = claim
	return State{Claims: claims}
}

// Without returns a copy of the state, with the claim removed.
func (s State) Without(uid types.UID) State {
	claims := maps.Clone(s.Claims)
	delete(claims, uid)
	return State{Claims: claims}
}

// Devices returns the number of prepared devices. Devices with admin access don't count.
func (s State) Devices() int {
	count := 0
	for _, claim := range s.Claims {
		for _, device := range claim.Devices {
			if !device.Admin {
				count++
			}
		}
	}
	return count
}
