// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset chooses the nodes for the pods of a group, and assigns the pods to them, by a CEL expression over the set of
// nodes.
//
//	search := &nodeset.Search{Chooser: chooser, Group: group, Nodes: nodes, Hosts: hosts, Compiled: compiled}
//	choice, err := search.Choose(ctx)
//
// The scheduler and kubectl use the same [Search] with different [Hosts], which say what a node can take: the filters of the
// profile, or the objects that kubectl has read.
//
// Package allocator enumerates the sets. It sees nodes as devices of [device.NodeDriver] in one pool, and the group as a claim.
// The claim has a request for the nodes where pods of the group already run, a request for the other nodes, a constraint over all
// of them, and possibly a preference. A set is accepted if the pods can be assigned to its nodes. The result is the first set
// with an assignment that satisfies the expression, or the best one.
//
// An expression reads labels of a node, attributes and capacities that all devices of a driver share there, and a pod's devices.
package nodeset
