// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"slices"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/cluster"
	"github.com/celset/celset/cel/memo"
	"github.com/celset/celset/placement/internal/plan"
	"github.com/celset/celset/placement/internal/verdict"
)

// A Scheduler has one memory. It remembers of each Placement what its spec means (the plan), what its predicates
// say of each version of a cluster (the verdicts), and what the last result was made from. What it remembers grows
// with Placements times clusters, and with expressions, which tenants write. So it has a bound in bytes: what is
// known of the Placement that was not decided for the longest time is forgotten first, and found again when that is
// decided the next time. Nothing is remembered of a Placement without UID or generation, as dry runs have it.

// memories are those of all Placements.
type memories struct {
	environment *cluster.Environment
	bound       *memo.Memory
	mutex       sync.Mutex
	of          map[types.UID]*memory
}

// newMemories returns memories that share a bound, and compile with an environment.
func newMemories(environment *cluster.Environment, bound *memo.Memory) *memories {
	return &memories{environment: environment, bound: bound, of: map[types.UID]*memory{}}
}

// memory is that of one Placement. It is locked while the Placement is decided.
type memory struct {
	mutex sync.Mutex
	// slot is nil if nothing is to be remembered.
	slot *memo.Slot[remembered]
}

// remembered is what is known of one Placement.
type remembered struct {
	// generation is that of the spec that plan comes from.
	generation int64
	plan       *plan.Plan
	verdicts   verdict.Verdicts
	// last is what the last result was made from. It is nil if something that was found since makes it another one.
	last *lastResult
}

// memoryOf returns the memory of a Placement, locked, and what it has with the plan. The caller releases it. The
// error is that of the context.
func (s *memories) memoryOf(ctx context.Context, placement *clusterv1beta1.Placement) (*memory, *remembered, error) {
	m := &memory{}
	if placement.UID != "" && placement.Generation != 0 {
		s.mutex.Lock()
		if before := s.of[placement.UID]; before != nil {
			m = before
		} else {
			m.slot = memo.NewSlot[remembered](s.bound)
			s.of[placement.UID] = m
		}
		s.mutex.Unlock()
	}
	m.mutex.Lock()
	known := m.look()
	if known.plan == nil || known.generation != placement.Generation {
		compiled, err := plan.Compile(ctx, s.environment, placement)
		if err != nil {
			m.mutex.Unlock()
			return nil, nil, err
		}
		known = remembered{generation: placement.Generation, plan: compiled}
	}
	return m, &known, nil
}

// existing is the memory of a Placement, nil if there is none.
func (s *memories) existing(of types.UID) *memory {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.of[of]
}

// forget frees what is remembered of a Placement.
func (s *memories) forget(placement types.UID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if forgotten := s.of[placement]; forgotten != nil {
		forgotten.slot.Forget()
	}
	delete(s.of, placement)
}

// remembers reports whether what is known is kept.
func (m *memory) remembers() bool { return m.slot != nil }

// lock locks an existing memory, and returns what is kept in it.
func (m *memory) lock() *remembered {
	m.mutex.Lock()
	known := m.look()
	return &known
}

// unlock unlocks the memory, and leaves what is kept as it is.
func (m *memory) unlock() { m.mutex.Unlock() }

// look returns what is kept, nothing if that was forgotten.
func (m *memory) look() remembered {
	if m != nil && m.slot != nil {
		if kept := m.slot.Look(); kept != nil {
			return *kept
		}
	}
	return remembered{}
}

// release keeps what is known if there is room, and unlocks the memory.
func (m *memory) release(known *remembered) {
	defer m.mutex.Unlock()
	if m.slot != nil {
		m.slot.Keep(known, known.size())
	}
}

// size is an estimate of what is known of a Placement. It has the compiled expressions, which Placements with the
// same ones share, and lists of clusters, which those that choose from the same sets share. The clusters
// themselves are those of the snapshot.
func (k *remembered) size() memo.Size {
	size := memo.Size{Bytes: planBytes + k.verdicts.Bytes + int(unsafe.Sizeof(lastResult{})), Parts: k.plan.Parts}
	lists := [][]*clusterv1.ManagedCluster{k.verdicts.Of}
	if k.last != nil {
		lists = append(lists, k.last.available.Clusters)
	}
	if k.last != nil && k.last.ranking != nil {
		size.Bytes += k.last.ranking.Bytes()
	}
	for _, list := range lists {
		if n := len(list); n > 0 {
			size.Parts = append(slices.Clip(size.Parts), memo.Part{Of: &list[0], Bytes: 2 * n * int(unsafe.Sizeof(&list[0]))})
		}
	}
	return size
}

// planBytes is about what a plan takes besides its expressions.
const planBytes = 4 << 10
