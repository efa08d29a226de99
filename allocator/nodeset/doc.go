// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset chooses the nodes on which the pods of a group run, and which pod goes to which of them, by a CEL expression
// over the set of nodes.
//
//	search := &nodeset.Search{Chooser: chooser, Group: group, Nodes: nodes, Hosts: hosts, Compiled: compiled}
//	choice, err := search.Choose(ctx)
//
// The scheduler and kubectl use the same search ([Search]). They differ in who says what a node can take ([Hosts]): the filters
// of the profile, or what kubectl has read of the cluster.
//
// Package allocator enumerates the sets. To it a node is a device of [device.NodeDriver], the nodes are a pool, and the group
// is a claim: a request for the nodes on which pods of the group run already, a request for the other nodes, a constraint over
// all of them, and a preference if there is one. A set is accepted if the pods can be assigned to its nodes. So the promise is
// that of package allocator: of the sets with an assignment, the first that satisfies the expression, or the best.
//
// An expression reads the labels of a node, the attributes and capacities that all devices of a driver have in common there,
// and the devices that a pod gets.
package nodeset
