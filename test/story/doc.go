// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package story contains the two user stories of KEP-5254: four connected devices of a ring, and a 2x2 block of a mesh. A
// [Story] has the manifest of a pod with this claim, the devices of a node, and a check of the result.
//
//	ring := story.Ring()
//	slices, err := ring.Topology.ResourceSlices("node-1")
//	claim, pod, err := ring.Occupant("other", "node-1", ring.Fragmented...)
//	... // publish the slices, create claim and pod, apply ring.Manifest
//	ring.Holds(devices) // the devices that ring.Pod got
package story
