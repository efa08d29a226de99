// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

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

// Memory remembers the state of Placements for a Scheduler. It has one entry for each Placement.
type Memory struct {
	environment *cluster.Environment
	bound       *memo.Memory
	mutex       sync.Mutex
	of          map[types.UID]*Entry
}

// New returns an empty memory. environment compiles specs. bound limits the size of all entries together.
func New(environment *cluster.Environment, bound *memo.Memory) *Memory {
	return &Memory{environment: environment, bound: bound, of: map[types.UID]*Entry{}}
}

// Entry holds the state of one Placement. The entry is locked while the Placement is decided.
type Entry struct {
	mutex sync.Mutex
	// slot stores the state. It is nil if the Placement must not be remembered.
	slot *memo.Slot[Known]
}

// Known is the remembered state of one Placement.
type Known struct {
	// Generation is the generation of the Placement whose spec is compiled in Plan.
	Generation int64
	Plan       *plan.Plan
	Verdicts   verdict.Verdicts
	// Last holds the inputs of the last result. It is nil if the last result is not valid any more.
	Last *Last
}

// Open locks the entry of a Placement, and returns the entry and its state. It compiles the plan if necessary. The caller must
// call Release. Open fails only if ctx is done.
func (m *Memory) Open(ctx context.Context, placement *clusterv1beta1.Placement) (*Entry, *Known, error) {
	e := &Entry{}
	if placement.UID != "" && placement.Generation != 0 {
		m.mutex.Lock()
		if before := m.of[placement.UID]; before != nil {
			e = before
		} else {
			e.slot = memo.NewSlot[Known](m.bound)
			m.of[placement.UID] = e
		}
		m.mutex.Unlock()
	}
	e.mutex.Lock()
	known := e.Look()
	if known.Plan == nil || known.Generation != placement.Generation {
		compiled, err := plan.Compile(ctx, m.environment, placement)
		if err != nil {
			e.mutex.Unlock()
			return nil, nil, err
		}
		known = Known{Generation: placement.Generation, Plan: compiled}
	}
	return e, &known, nil
}

// Existing returns the entry of a Placement, or nil if the memory has no entry.
func (m *Memory) Existing(of types.UID) *Entry {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.of[of]
}

// Forget removes the entry of a Placement.
func (m *Memory) Forget(placement types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if forgotten := m.of[placement]; forgotten != nil {
		forgotten.slot.Forget()
	}
	delete(m.of, placement)
}

// Remembers reports whether Release will store the state of this entry.
func (e *Entry) Remembers() bool { return e.slot != nil }

// Lock locks the entry and returns a copy of its state.
func (e *Entry) Lock() *Known {
	e.mutex.Lock()
	known := e.Look()
	return &known
}

// Unlock unlocks the entry without changing the stored state.
func (e *Entry) Unlock() { e.mutex.Unlock() }

// Look returns the stored state. The state is empty if it was forgotten, or if e is nil.
func (e *Entry) Look() Known {
	if e != nil && e.slot != nil {
		if kept := e.slot.Look(); kept != nil {
			return *kept
		}
	}
	return Known{}
}

// Release stores the state, as far as the memory limit allows it, and unlocks the entry.
func (e *Entry) Release(known *Known) {
	defer e.mutex.Unlock()
	if e.slot != nil {
		e.slot.Keep(known, known.size())
	}
}

// size estimates the memory that the state uses. Equal expressions are shared by Placements and counted once. So is the list of
// clusters, if Placements select from the same sets. The clusters themselves belong to the snapshot.
func (k *Known) size() memo.Size {
	size := memo.Size{Bytes: planBytes + k.Verdicts.Bytes + int(unsafe.Sizeof(Last{})), Parts: k.Plan.Parts}
	lists := [][]*clusterv1.ManagedCluster{k.Verdicts.Of}
	if k.Last != nil {
		lists = append(lists, k.Last.Available.Clusters)
	}
	if k.Last != nil && k.Last.Ranking != nil {
		size.Bytes += k.Last.Ranking.Bytes()
	}
	for _, list := range lists {
		if n := len(list); n > 0 {
			size.Parts = append(slices.Clip(size.Parts), memo.Part{Of: &list[0], Bytes: 2 * n * int(unsafe.Sizeof(&list[0]))})
		}
	}
	return size
}

// planBytes is the estimated size in bytes of a plan without its expressions.
const planBytes = 4 << 10
