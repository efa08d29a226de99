// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

const (
	// AttributeID is a string attribute with the name of the device. It is needed because expressions can't read the name
	// itself.
	AttributeID = "id"
	// AttributePeers is a string attribute with the names of the linked devices, joined by commas.
	AttributePeers = "peers"
	// AttributePeerList is an attribute with the names of the linked devices as a list of strings.
	AttributePeerList = "peerList"
)

// PeerForm selects the attributes that name a device's peers.
type PeerForm int

const (
	// PeersAsString publishes AttributePeers, which every API server accepts.
	PeersAsString PeerForm = iota
	// PeersAsStringAndList also publishes AttributePeerList. An API server without the feature gate DRAListTypeAttributes rejects
	// the slices.
	PeersAsStringAndList
)

const (
	quads       = 2
	quadCorners = 4
)

// NewHybridCubeMesh returns 8 devices, wired like a server with eight GPUs and no switch. There are two quads: devices 0 to 3
// and 4 to 7. All devices of a quad are linked to each other. Each device is also linked to its counterpart in the other quad.
func NewHybridCubeMesh(family Family, form PeerForm) (Topology, error) {
	if err := family.validate(quads * quadCorners); err != nil {
		return Topology{}, fmt.Errorf("hybrid cube mesh: %w", err)
	}
	devices := make([]Device, quads*quadCorners)
	for i := range devices {
		at := Coordinates{Row: i / quadCorners, Col: i % quadCorners}
		devices[i] = family.device(i, at, nil)
	}
	connect(devices, cubeMeshLinks())
	for i := range devices {
		devices[i].Attributes = peerAttributes(devices[i], form)
		if err := checkPeers(devices[i]); err != nil {
			return Topology{}, fmt.Errorf("hybrid cube mesh: prefix %q: %w", family.Prefix, err)
		}
	}
	return Topology{Kind: HybridCubeMesh, Devices: devices}, nil
}

func cubeMeshLinks() [][2]int {
	var links [][2]int
	for corner := range quadCorners {
		for other := range corner {
			links = append(links,
				[2]int{corner, other},
				[2]int{quadCorners + corner, quadCorners + other})
		}
		links = append(links, [2]int{corner, quadCorners + corner})
	}
	return links
}

func peerAttributes(d Device, form PeerForm) attributes {
	result := attributes{
		AttributeID:    stringAttribute(d.Name),
		AttributePeers: stringAttribute(strings.Join(d.Neighbors, ",")),
	}
	if form == PeersAsStringAndList {
		result[AttributePeerList] = resourceapi.DeviceAttribute{StringValues: slices.Clone(d.Neighbors)}
	}
	return result
}

// checkPeers checks the length of AttributePeers, because only this attribute grows with the number of links.
func checkPeers(d Device) error {
	const most = resourceapi.DeviceAttributeMaxValueLength
	if length := len(*d.Attributes[AttributePeers].StringValue); length > most {
		return fmt.Errorf("attribute %q of %s has %d characters, the API allows %d: use a shorter prefix",
			AttributePeers, d.Name, length, most)
	}
	return nil
}
