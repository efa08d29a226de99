// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// State is what is prepared. It is not changed in place: see With and Without.
type State struct {
	// Claims are all that are prepared.
	Claims map[types.UID]Claim `json:"claims"`
}

// Claim is a prepared claim. Name and namespace are for messages.
type Claim struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Devices are those of the driver, in the order of the allocation. There is at least
	// one.
	Devices []Device `json:"devices"`
}

// Device is a device that was allocated to a claim.
type Device struct {
	// Request is that of the allocation: "request", or "request/subrequest".
	Request string `json:"request"`
	Pool    string `json:"pool"`
	Name    string `json:"name"`
	// Admin means that the claim has access, and not the device.
	Admin bool `json:"admin,omitempty"`
	// Share is that of the allocation, of a device that several claims can have.
	Share types.UID `json:"share,omitempty"`
	// Attributes are those that the device had when the claim was prepared: what is
	// published may change while the claim is in use.
	Attributes map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes,omitempty"`
	// Capacity is what the claim has: of a share what it consumes, otherwise what the
	// device had then.
	Capacity map[resourceapi.QualifiedName]resource.Quantity `json:"capacity,omitempty"`
}

// With is the state with one more claim, or with another content of one.
func (s State) With(uid types.UID, claim Claim) State {
	claims := maps.Clone(s.Claims)
	if claims == nil {
		claims = map[types.UID]Claim{}
	}
	claims[uid] = claim
	return State{Claims: claims}
}

// Without is the state with one claim less.
func (s State) Without(uid types.UID) State {
	claims := maps.Clone(s.Claims)
	delete(claims, uid)
	return State{Claims: claims}
}

// Devices is how many devices are prepared, without those for administrators' access.
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
