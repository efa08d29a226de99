// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// A State holds the prepared claims. It is immutable: see With and Without.
type State struct {
	// Claims are all prepared claims.
	Claims map[types.UID]Claim `json:"claims"`
}

// A Claim is a prepared claim. Name and namespace are for messages.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Devices are the claim's devices of this driver in the order of the allocation, at least one.
	Devices []Device `json:"devices"`
}

// A Device is an allocated device.
type Device struct {
	// Request is the request in the allocation: "request", or "request/subrequest".
	Request string `json:"request"`
	Pool    string `json:"pool"`
	Name    string `json:"name"`
	// Admin means that the claim has admin access without owning the device.
	Admin bool `json:"admin,omitempty"`
	// Share is the share ID in the allocation, if several claims can share the device.
	Share types.UID `json:"share,omitempty"`
	// Attributes are the device's attributes when the claim was prepared. Published attributes may change while the claim is in use.
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes,omitempty"`
	// Capacity is the consumed capacity of a share, or else the capacity of the device when the claim was prepared.
	Capacity map[resourceapi.QualifiedName]resource.Quantity `json:"capacity,omitempty"`
}

// With returns the state with a claim added or replaced.
func (s State) With(uid types.UID, claim Claim) State {
	claims := maps.Clone(s.Claims)
	if claims == nil {
		claims = map[types.UID]Claim{}
	}
	claims[uid] = claim
	return State{Claims: claims}
}

// Without returns the state without a claim.
func (s State) Without(uid types.UID) State {
	claims := maps.Clone(s.Claims)
	delete(claims, uid)
	return State{Claims: claims}
}

// Devices returns the number of prepared devices, excluding admin access.
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
