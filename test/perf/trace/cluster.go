// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import "fmt"

// policy says where a claim is placed.
type policy interface {
	// place chooses a node, and devices of those that are free there. The node is -1 if the claim
	// fits nowhere.
	place(free []Set, size int) (node int, set Set, err error)
}

// nodes are machines of one kind.
type nodes struct {
	machine *Machine
	policy  policy
	free    []Set
}

func newNodes(machine *Machine, count int, policy policy) *nodes {
	n := &nodes{machine: machine, policy: policy}
	for range count {
		n.free = append(n.free, machine.all())
	}
	return n
}

func (n *nodes) devices() int { return len(n.free) * n.machine.all().len() }

// place does not trust the policy.
func (n *nodes) place(size int) (placement, bool, error) {
	node, set, err := n.policy.place(n.free, size)
	if err != nil || node < 0 {
		return placement{}, false, err
	}
	if !n.free[node].has(set) || set.len() != size || !n.machine.willDo(set) {
		return placement{}, false, fmt.Errorf("%s, %d devices: of %b on node %d the policy chose %b", n.machine.Name, size, n.free[node], node, set)
	}
	n.free[node] &^= set
	return placement{node, set, n.machine.score(set)}, true, nil
}

func (n *nodes) release(p placement) { n.free[p.node] |= p.set }

// pool is as many devices without nodes, any of which will do: no choice of nodes and sets can place
// a claim that it can't.
type pool int

func (p pool) devices() int                       { return int(p) }
func (p pool) place(int) (placement, bool, error) { return placement{}, true, nil }
func (p pool) release(placement)                  {}
