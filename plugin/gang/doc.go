// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gang is the scheduler plugin TopologyPlacementGeneratorCEL. It chooses the nodes of a PodGroup with a node set
// constraint:
//
//  1. PreEnqueue gates the pods of the group until the constraint is compiled (nodesets_prepare.go).
//  2. GeneratePlacements sorts the pods by kind. The filters of the profile decide which nodes can take a pod of each kind
//     (nodesets_kinds.go).
//  3. Package nodeset chooses a set of nodes. It calls groupHosts to find out which pods a node takes together
//     (nodesets_hosts.go).
//  4. PreFilter restricts each pod to its assigned node (nodesets_tried.go). If a pod does not fit there, another set is chosen.
package gang
