// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math/rand/v2"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Names of policies.
const (
	// FirstFit takes the first node where something fits, and the first set there.
	FirstFit = "first fit"
	// Today takes any node where something fits, as kube-scheduler does where scores are equal, and the
	// first set there.
	Today = "today"
	// Random takes any such node, and any set.
	Random = "random"
	// FullestNode takes the node with the fewest free devices where something fits, and the first set.
	FullestNode = "fullest node"
	// BestEffort takes the first node that has enough free devices, and there what NVIDIA's
	// best-effort policy takes; where sets have to satisfy a constraint, the first node where that does.
	BestEffort = "best effort"
	// Links takes the node and the set with the most links, with a preference of the class.
	Links = "links"
	// KeepWhole takes the node and the set that breaks the fewest others, the first node of several.
	KeepWhole = "KeepWhole"
	// KeepWholeTies is that with any of several nodes, as kube-scheduler has it.
	KeepWholeTies = "KeepWhole, ties at random"
	// LinksKeepWhole looks at links first, and of those with the most at what is broken.
	LinksKeepWhole = "links, KeepWhole"
	// Pool has no nodes and no constraints.
	Pool = "pool"
)

// policiesOn are those that are compared on a machine.
func policiesOn(m *Machine) []string {
	if m.scores == nil {
		return []string{FirstFit, Today, Random, FullestNode, KeepWhole, KeepWholeTies, Pool}
	}
	return []string{FirstFit, Today, Random, FullestNode, BestEffort, Links, KeepWhole, KeepWholeTies, LinksKeepWhole, Pool}
}

// choosing are machines of one kind, and how they are asked what is chosen.
type choosing struct {
	machine *Machine
	nodes   int
	// direct asks the allocator about each node, and remembers nothing but what it does.
	direct bool
	// around is for what is asked of nodes, if not nil.
	around func(opener) opener
	// remembers has what was asked by the names of policies, if not nil.
	remembers map[string]opener
}

// cluster has the nodes with the policy.
func (c choosing) cluster(name string, source *rand.Rand) (cluster, error) {
	if name == Pool {
		return pool(c.nodes * c.machine.all().len()), nil
	}
	p, err := c.policy(name, source)
	if err != nil {
		return nil, err
	}
	return newNodes(c.machine, c.nodes, p), nil
}

func (c choosing) policy(name string, source *rand.Rand) (policy, error) {
	open, err := c.opener(name, source)
	if err != nil {
		return nil, err
	}
	if c.around != nil {
		open = c.around(open)
	}
	switch name {
	case FirstFit, BestEffort:
		return firstNode{open}, nil
	case Today, Random:
		return randomNode{open, source}, nil
	case FullestNode:
		return fullestNode{open}, nil
	case KeepWholeTies:
		return bestNode{open, source}, nil
	default:
		return bestNode{open, nil}, nil
	}
}

func (c choosing) opener(name string, source *rand.Rand) (opener, error) {
	question := name
	switch name {
	case Today, FullestNode:
		question = FirstFit
	case KeepWholeTies:
		question = KeepWhole
	}
	if open := c.remembers[question]; open != nil {
		return open, nil
	}
	var open opener
	switch name {
	case Random:
		return always(c.machine.anySet(source)), nil
	case BestEffort:
		chooses := c.machine.ifItWillDo(c.machine.bestEffort)
		if open = remembered(chooses); c.direct {
			open = always(chooses)
		}
	default:
		var err error
		if open, err = c.asks(name); err != nil {
			return nil, err
		}
	}
	if c.remembers != nil {
		c.remembers[question] = open
	}
	return open, nil
}

// asks has the allocator choose, with what the policy wants of it.
func (c choosing) asks(name string) (opener, error) {
	var preferences []v1alpha1.CELDevicePreference
	var options []allocator.Option
	switch name {
	case Links:
		preferences = append(preferences, c.machine.strongLinks())
	case KeepWhole, KeepWholeTies:
		options = c.machine.keepWhole()
	case LinksKeepWhole:
		preferences = append(preferences, c.machine.strongLinks(), wholeLast())
		options = c.machine.keepWhole()
	}
	nodes := 1
	if c.direct {
		nodes = c.nodes
	}
	asked, err := newAsked(c.machine, nodes, preferences, options...)
	if err != nil {
		return nil, err
	}
	if c.direct {
		return asked.open, nil
	}
	return remembered(asked.alone), nil
}
