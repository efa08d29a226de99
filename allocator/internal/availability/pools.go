// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	draapi "k8s.io/dynamic-resource-allocation/api"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device/bitset"
)

// Pools has what [State.Of] tells, for who asks about most nodes of a cluster: the devices in
// use are sorted by pool once, and not looked up one by one all over a map of the whole cluster.
type Pools struct {
	state *State
	// devices are those in use, one pool after the other, places where those of a pool are.
	devices []draapi.UniqueString
	places  map[poolID]*stretch
}

type poolID struct{ driver, name draapi.UniqueString }

type stretch struct{ from, to int32 }

// Pools sorts the devices in use.
func (s *State) Pools() *Pools {
	type inUse struct {
		pool   *stretch
		device draapi.UniqueString
	}
	p := &Pools{state: s, devices: make([]draapi.UniqueString, len(s.AllocatedDevices)), places: make(map[poolID]*stretch)}
	all := make([]inUse, 0, len(s.AllocatedDevices))
	for id := range s.AllocatedDevices {
		if s.givenBack.Has(id) {
			continue
		}
		pool := p.places[poolID{id.Driver, id.Pool}]
		if pool == nil {
			pool = &stretch{}
			p.places[poolID{id.Driver, id.Pool}] = pool
		}
		pool.to++
		all = append(all, inUse{pool, id.Device})
	}
	from := int32(0)
	for _, pool := range p.places {
		pool.from, from = from, from+pool.to
		pool.to = pool.from
	}
	for _, d := range all {
		p.devices[d.pool.to] = d.device
		d.pool.to++
	}
	return p
}

// manyComparisons is from where on looking up is faster.
const manyComparisons = 1 << 14

// Of returns the positions of the devices that are in use.
func (p *Pools) Of(has *inventory.Inventory) bitset.Set {
	allocated := bitset.New(len(has.Candidates))
	for from := 0; from < len(has.Candidates); {
		first := has.Candidates[from]
		to := from + first.Pool.Len()
		if pool := p.places[poolID{first.ID.Driver, first.ID.Pool}]; p.state.HasShared() {
			p.look(allocated, has.Candidates[from:to])
		} else if pool != nil {
			p.join(allocated, has.Candidates[from:to], p.devices[pool.from:pool.to])
		}
		from = to
	}
	return allocated
}

func (p *Pools) join(allocated bitset.Set, candidates []*inventory.Candidate, inUse []draapi.UniqueString) {
	if len(candidates)*len(inUse) > manyComparisons {
		p.look(allocated, candidates)
		return
	}
	for _, c := range candidates {
		for _, device := range inUse {
			if device == c.ID.Device {
				allocated.Add(c.Position)
				break
			}
		}
	}
}

// look looks each device up.
func (p *Pools) look(allocated bitset.Set, candidates []*inventory.Candidate) {
	for _, c := range candidates {
		if p.state.isTaken(c) {
			allocated.Add(c.Position)
		}
	}
}
