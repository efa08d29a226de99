// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeset chooses the set of nodes on which the pods of a group run together, by a CEL expression over the set.
//
//	chooser, err := nodeset.NewChooser(observer)
//	prepared, err := chooser.Prepare(ctx, group)
//	choice, err := chooser.Choose(ctx, group, prepared, nodes)
//
// It has no search of its own. To package allocator a node is a device of [device.NodeDriver], the nodes are a pool, and
// the group is a claim: a request for the nodes on which pods of it run already, one for each kind of its pods, a constraint
// over all of them, and a preference if there is one. So the promise is that of package allocator: of the sets of nodes that
// can take the pods one by one, the first that satisfies the expression, or the best.
//
// What an expression reads of a node are its labels, and the attributes and capacities that all devices of a driver have
// there in common.
package nodeset
