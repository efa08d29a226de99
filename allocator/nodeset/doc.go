// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset chooses the nodes for the pods of a group by a CEL expression over the set of nodes, and assigns the pods.
//
//	search := &nodeset.Search{Chooser: chooser, Group: group, Nodes: nodes, Hosts: hosts, Compiled: compiled}
//	choice, err := search.Choose(ctx)
//
// The scheduler and kubectl use the same [Search] with different implementations of [Hosts]. Hosts reports which pods a node
// can take: by the filters of the scheduler's profile, or by the objects that kubectl has read.
//
// Package allocator enumerates the sets. It treats nodes as devices of [device.NodeDriver] in one pool, and the group as a
// claim. The claim has a request for the nodes that already run pods of the group, a request for the other nodes, a constraint
// over all these nodes, and possibly a preference. A set is accepted if the pods can be assigned to its nodes. The result is
// the first accepted set that satisfies the expression or, with a preference, the best such set.
//
// An expression can read the labels of a node, the attributes and capacities that all devices of a driver on the node have in
// common, and the devices of a pod.
package nodeset
