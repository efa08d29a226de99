// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"slices"
	"strconv"
	"sync"
)

// Load holds the number of pods of each kind that are assigned to a node together.
type Load []int

// Pods returns the number of pods of all kinds.
func (l Load) Pods() (count int) {
	for _, n := range l {
		count += n
	}
	return count
}

// Hosts reports which pods nodes can take. The scheduler implements it with its filters, and a simulation with objects.
type Hosts interface {
	// Refusal returns the reason why a node can't take the pods of a load in addition to its running pods, or "" if the node
	// can take them. A load has at least two pods, and the node can take each of them alone. If Refusal refuses a load, it must
	// also refuse each larger load that contains it. Several goroutines call Refusal.
	Refusal(ctx context.Context, node int, load Load) (string, error)
	// Each calls do with each number below n, from several goroutines if possible.
	Each(ctx context.Context, n int, do func(i int))
	// Compete reports whether pods on different nodes may need the same resource, such as a network-attached device.
	Compete() bool
	// Together reports whether the pods of all members fit at the same time. It is called only if Compete returns true.
	Together(ctx context.Context, members []Member) (bool, error)
}

// slots holds the number of pods that each node can take.
type slots struct {
	// most is indexed by node and kind. It holds the number of pods that the node can take if all pods are of this kind. all is
	// indexed by node. It holds an upper bound of the number of pods of all kinds together.
	most [][]int
	all  []int
	// verdicts caches whether a node takes a load with several kinds of pods. The key is keyOf.
	verdicts map[string]bool
}

// measure determines how many pods of each kind each node can take.
func (s *Search) measure(ctx context.Context) error {
	r := &s.slots
	if r.verdicts == nil {
		r.verdicts = map[string]bool{}
	}
	if s.ReadsDevices {
		return nil
	}
	isMeasured := r.most != nil
	if !isMeasured {
		r.most = make([][]int, len(s.Nodes))
	}
	type question struct{ node, kind int }
	var questions []question
	for i := range s.Nodes {
		if !isMeasured {
			r.most[i] = make([]int, len(s.Kinds))
		}
		for kind, count := range s.Kinds {
			switch {
			case !s.takesOne(i, kind):
				r.most[i][kind] = 0
			case isMeasured:
			case min(count, s.free(i)) == 1:
				r.most[i][kind] = 1
			default:
				questions = append(questions, question{i, kind})
			}
		}
	}
	defer s.addUp()
	var mutex sync.Mutex
	var failure error
	if len(questions) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.Hosts.Each(ctx, len(questions), func(i int) {
		q := questions[i]
		most, err := s.mostOf(ctx, q.node, q.kind)
		mutex.Lock()
		defer mutex.Unlock()
		if r.most[q.node][q.kind] = most; err != nil && failure == nil {
			failure = err
			cancel()
		}
	})
	if failure == nil {
		return ctx.Err()
	}
	return failure
}

// addUp fills slots.all from slots.most.
func (s *Search) addUp() {
	s.slots.all = make([]int, len(s.Nodes))
	for i, most := range s.slots.most {
		sum := 0
		for _, n := range most {
			sum += n
		}
		s.slots.all[i] = min(sum, s.free(i))
	}
}

// takesOne reports whether a node can take at least one pod of a kind.
func (s *Search) takesOne(node, kind int) bool {
	n := &s.Nodes[node]
	return kind < len(n.Takes) && n.Takes[kind] && s.free(node) > 0
}

// free returns the maximum number of further pods of the group on a node.
func (s *Search) free(node int) int {
	n := &s.Nodes[node]
	switch {
	case s.podsPerNode() > 1:
		// More pods run there than podsPerNode permits if it was reduced later.
		return max(0, n.Free)
	case n.Placed:
		return 0
	default:
		return 1
	}
}

// mostOf returns how many pods of a kind a node can take, by bisection. It first tries the maximum, which usually fits.
func (s *Search) mostOf(ctx context.Context, node, kind int) (int, error) {
	takes, refused := 1, min(s.Kinds[kind], s.free(node))+1
	for next := refused - 1; takes+1 < refused; next = (takes + refused) / 2 {
		load := make(Load, len(s.Kinds))
		load[kind] = next
		refusal, err := s.Hosts.Refusal(ctx, node, load)
		switch {
		case err != nil:
			return 0, err
		case refusal == "":
			takes = next
		default:
			refused = next
		}
	}
	return takes, nil
}

// takes reports whether a node can take a load.
func (s *Search) takes(ctx context.Context, node int, load Load) bool {
	kinds := 0
	for kind, n := range load {
		if n > s.slots.most[node][kind] {
			return false
		}
		if n > 0 {
			kinds++
		}
	}
	key := keyOf(node, load)
	if known, ok := s.slots.verdicts[key]; ok {
		return known
	}
	if kinds < 2 {
		return true
	}
	refusal, err := s.Hosts.Refusal(ctx, node, load)
	if err != nil {
		s.err = err
		return false
	}
	s.slots.verdicts[key] = refusal == ""
	return refusal == ""
}

// keyOf returns a key for a node and a load, which may have very many kinds.
func keyOf(node int, load Load) string {
	key := strconv.AppendInt(nil, int64(node), 10)
	for kind, n := range load {
		if n > 0 {
			key = strconv.AppendInt(append(key, ' '), int64(kind), 10)
			key = strconv.AppendInt(append(key, ':'), int64(n), 10)
		}
	}
	return string(key)
}

// Forbid records that a node can't take a load, because one of the pods did not fit there. The next choice avoids this load.
func (s *Search) Forbid(node int, load Load) {
	s.slots.verdicts[keyOf(node, load)] = false
	for kind, n := range load {
		if n == load.Pods() {
			s.slots.most[node][kind] = min(s.slots.most[node][kind], n-1)
		}
		if n == 1 && load.Pods() == 1 {
			s.Nodes[node].Takes[kind] = false
		}
	}
}

// slotsFor returns an upper bound of the number of pods of the given kinds together that a node can take.
func (s *Search) slotsFor(node int, kinds []int) int {
	if len(kinds) == len(s.Kinds) {
		return s.slots.all[node]
	}
	sum := 0
	for _, kind := range kinds {
		sum += s.slots.most[node][kind]
	}
	return min(sum, s.free(node))
}

// sizes returns the smallest and largest number of nodes that count pods need in addition to the nodes that already run pods of
// the group. ok is false if all nodes together can't take the pods.
func (r *slots) sizes(s *Search, count int) (least, most int, ok bool) {
	all := kindsBelow(len(s.Kinds))
	var others []int
	left := count
	s.tried.most = 0
	for i := range s.Nodes {
		slots := s.slotsFor(i, all)
		s.tried.most += slots
		switch {
		case s.Nodes[i].Placed:
			left -= slots
		case slots > 0:
			others = append(others, slots)
		}
	}
	slices.SortFunc(others, func(a, b int) int { return b - a })
	for _, slots := range others {
		if left <= 0 {
			break
		}
		left -= slots
		least++
	}
	if s.podsPerNode() == 1 {
		return count, count, left <= 0
	}
	return least, min(count, len(others)), left <= 0
}

func kindsBelow(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
