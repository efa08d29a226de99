// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gang is the scheduler plugin TopologyPlacementGeneratorCEL. It chooses the nodes of a PodGroup with a node set
// constraint:
//
//  1. PreEnqueue gates the pods of the group until the constraint is compiled (nodesets_prepare.go).
//  2. GeneratePlacements sorts the pods by kind: pods of one kind fit on the same nodes. The profile's filters decide which
//     nodes can take a pod of each kind (nodesets_kinds.go).
//  3. Package nodeset chooses a set of nodes. It asks groupHosts which pods a node can take together (nodesets_hosts.go).
//  4. PreFilter restricts each pod to its assigned node (nodesets_tried.go). If a pod does not fit there, another set is
//     chosen.
package gang
