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

// Memory is the memory of a Scheduler, with an entry for each Placement.
type Memory struct {
	environment *cluster.Environment
	bound       *memo.Memory
	mutex       sync.Mutex
	of          map[types.UID]*Entry
}

// New returns an empty memory that compiles with an environment. Its entries share the bound.
func New(environment *cluster.Environment, bound *memo.Memory) *Memory {
	return &Memory{environment: environment, bound: bound, of: map[types.UID]*Entry{}}
}

// Entry has what is known of one Placement. It is locked while the Placement is decided.
type Entry struct {
	mutex sync.Mutex
	// slot is nil if nothing is to be remembered of the Placement.
	slot *memo.Slot[Known]
}

// Known is what is known of one Placement.
type Known struct {
	// Generation is the generation of the spec from which Plan was compiled.
	Generation int64
	Plan       *plan.Plan
	Verdicts   verdict.Verdicts
	// Last has the inputs of the last result. It is nil if the result does not hold any more.
	Last *Last
}

// Open locks the entry of a Placement, and returns it with what is known, which has the plan at least. The caller
// releases the entry. The error is that of the context.
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

// Existing returns the entry of a Placement, nil if there is none.
func (m *Memory) Existing(of types.UID) *Entry {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.of[of]
}

// Forget frees what is remembered of a Placement.
func (m *Memory) Forget(placement types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if forgotten := m.of[placement]; forgotten != nil {
		forgotten.slot.Forget()
	}
	delete(m.of, placement)
}

// Remembers reports whether Release keeps what is known.
func (e *Entry) Remembers() bool { return e.slot != nil }

// Lock locks the entry, and returns what is known.
func (e *Entry) Lock() *Known {
	e.mutex.Lock()
	known := e.Look()
	return &known
}

// Unlock unlocks the entry, and leaves what is kept as it is.
func (e *Entry) Unlock() { e.mutex.Unlock() }

// Look returns what is known. It is empty if that was forgotten, or if there is no entry.
func (e *Entry) Look() Known {
	if e != nil && e.slot != nil {
		if kept := e.slot.Look(); kept != nil {
			return *kept
		}
	}
	return Known{}
}

// Release keeps what is known if there is room, and unlocks the entry.
func (e *Entry) Release(known *Known) {
	defer e.mutex.Unlock()
	if e.slot != nil {
		e.slot.Keep(known, known.size())
	}
}

// size returns an estimate of the memory that is used. Placements with the same expressions share them, and Placements
// that choose from the same sets share lists of clusters. The clusters themselves belong to the snapshot.
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

// planBytes is an estimate of the memory that a plan takes besides its expressions.
const planBytes = 4 << 10
