// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

// cluster is what claims are placed on.
type cluster interface {
	// devices are how many there are.
	devices() int
	// place takes devices, if it can.
	place(size int) (placement, bool, error)
	release(placement)
}

// retrying places a claim on a cluster when it arrives, whoever waits, and those that wait in the order
// of their arrival whenever one departs, as a scheduler does that holds back nobody. Of those of one
// size that wait, the first that does not fit stands for all.
type retrying struct {
	cluster cluster
	idle    int
	waiting []waiter
}

type waiter struct{ claim, size int }

func (r *retrying) arrive(claim, size int) (placement, bool, error) {
	got, placed, err := r.try(size)
	if !placed {
		r.waiting = append(r.waiting, waiter{claim, size})
	}
	return got, placed, err
}

func (r *retrying) depart(_, size int, p placement) (map[int]placement, error) {
	r.cluster.release(p)
	r.idle += size
	got, refused := map[int]placement{}, map[int]bool{}
	waiting := r.waiting[:0]
	for _, w := range r.waiting {
		if !refused[w.size] {
			p, placed, err := r.try(w.size)
			if err != nil {
				return nil, err
			}
			if placed {
				got[w.claim] = p
				continue
			}
			refused[w.size] = true
		}
		waiting = append(waiting, w)
	}
	r.waiting = waiting
	return got, nil
}

func (r *retrying) try(size int) (placement, bool, error) {
	if size > r.idle {
		return placement{}, false, nil
	}
	got, placed, err := r.cluster.place(size)
	if placed {
		r.idle -= size
	}
	return got, placed, err
}
