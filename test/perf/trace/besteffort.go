// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

// bestEffort is what the best-effort policy of NVIDIA's go-gpuallocator chooses, which its device
// plugin has the kubelet ask: the free GPUs of the node are divided into sets of the wanted size
// such that the scores of the links in all of them add up to the most, as if everybody wanted as
// many; of these sets the best is taken. What does not fill a set is left over. Of equal divisions
// and sets the first holds. For one GPU that is the first. It knows of no constraint.
func (m *Machine) bestEffort(_ int, free Set, size int) (choice, error) {
	if free.len() < size {
		return choice{}, nil
	}
	if size == 1 {
		return choice{set: free & -free}, nil
	}
	d := division{machine: m, size: size, best: -1}
	d.divide(free, free.len()%size)
	chosen := choice{set: d.sets[0]}
	for _, set := range d.sets[1:] {
		if m.score(set) > m.score(chosen.set) {
			chosen.set = set
		}
	}
	return chosen, nil
}

// division looks for the best one.
type division struct {
	machine *Machine
	size    int
	chosen  []Set
	score   int
	// sets are the best so far, best their score.
	sets []Set
	best int
}

// divide goes on with what is left, of which so many may remain over.
func (d *division) divide(left Set, over int) {
	if left.len() < d.size {
		if d.score > d.best {
			d.best, d.sets = d.score, append(d.sets[:0], d.chosen...)
		}
		return
	}
	first := left & -left
	for rest := range (left &^ first).subsets(d.size - 1) {
		set := first | rest
		worth := d.machine.score(set)
		d.chosen, d.score = append(d.chosen, set), d.score+worth
		d.divide(left&^set, over)
		d.chosen, d.score = d.chosen[:len(d.chosen)-1], d.score-worth
	}
	if over > 0 {
		d.divide(left&^first, over-1)
	}
}

// ifItWillDo passes over what does not satisfy the constraint for the size.
func (m *Machine) ifItWillDo(c chooser) chooser {
	return func(node int, free Set, size int) (choice, error) {
		chosen, err := c(node, free, size)
		if chosen.set != 0 && !m.willDo(chosen.set) {
			return choice{}, err
		}
		return chosen, err
	}
}
