// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

// The message names only counters that really prevent the allocation:
//
//  1. Change the problem so that the claims fit. There are three changes: devices in use consume no counters; the claims in the
//     way have no devices; no device consumes counters.
//  2. Undo the change for a single counter. If the claims no longer fit, this counter blocks alone. The message names the
//     counters that block alone under the first change with such counters.
//  3. If no counter blocks alone, several counters block together. Take the first change whose undoing for all counters leaves
//     no solution. Drop one counter after the other as long as the remaining counters still block. The message names the
//     counters that remain, which are a minimal conflict.
//
// A set of devices that exceeds the counters of an idle pool matters only if there is no other set.

// maxConflict limits the counters in step 3. If a problem has more counters, the message names all exceeded counters.
const maxConflict = 32

type counter struct{ driver, pool, set, name string }

// limits is a changed problem. The limit of each counter can be turned on separately.
type limits struct {
	*Problem
	node *v1.Node
	// used maps each counter to the amount that devices in use consume.
	used map[counter]resource.Quantity
	// with returns the problem with limits only for the counters that limited selects.
	with func(limited func(counter) bool) *Problem
	// results is the allocation that was found last.
	results []resourceapi.AllocationResult
}

// counters returns a message with the counters that prevent the allocation. results is an allocation without counters.
func (p *Problem) counters(ctx context.Context, node *v1.Node, results []resourceapi.AllocationResult, owners []Owner) (string, error) {
	problems, err := p.limits(ctx, node, results, owners)
	if err != nil {
		return "", err
	}
	for _, l := range problems {
		if alone, err := l.alone(ctx); len(alone) > 0 || err != nil {
			return namedCounters(alone), err
		}
	}
	for _, l := range problems {
		if together, err := l.conflict(ctx); len(together) > 0 || err != nil {
			return namedCounters(together), err
		}
	}
	return namedCounters(nil), nil
}

func namedCounters(counters []string) string {
	if len(counters) == 0 {
		return "the devices that consume counters have no common compatibility group"
	}
	return "not enough counters are free: " + listed(counters)
}

// limits returns the changed problems of step 1 whose claims fit.
func (p *Problem) limits(ctx context.Context, node *v1.Node, results []resourceapi.AllocationResult, owners []Owner) (all []*limits, err error) {
	used := p.usedCounters(p.Allocated)
	add := func(with func(limited func(counter) bool) *Problem) error {
		l := &limits{Problem: p, node: node, used: used, with: with}
		fits, err := l.solve(ctx, nothing)
		if fits {
			all = append(all, l)
		}
		return err
	}
	inUse := sets.New[structured.DeviceID]()
	p.eachAllocated(func(id structured.DeviceID, _ *resourceapi.DeviceRequestAllocationResult) { inUse.Insert(id) })
	if err := add(func(limited func(counter) bool) *Problem { return p.withUse(inUse, used, limited) }); err != nil {
		return nil, err
	}
	few, _, err := p.inTheWay(ctx, node, owners)
	if err != nil {
		return nil, err
	}
	isFew := func(claim *resourceapi.ResourceClaim) bool {
		return slices.ContainsFunc(few, func(o Owner) bool { return o.claim == claim })
	}
	if len(few) > 0 {
		rest := p.with(func(p *Problem) { p.Allocated = slices.DeleteFunc(slices.Clone(p.Allocated), isFew) })
		freed := p.usedCounters(slices.DeleteFunc(slices.Clone(p.Allocated), func(claim *resourceapi.ResourceClaim) bool { return !isFew(claim) }))
		if err := add(func(limited func(counter) bool) *Problem { return rest.withUse(nil, freed, limited) }); err != nil {
			return nil, err
		}
	}
	last := &limits{Problem: p, node: node, used: used, with: p.withLimits, results: results}
	if fits, err := last.solve(ctx, nothing); err != nil || fits {
		return append(all, last), err
	}
	// The claims would not fit even if all devices were free, so devices in use make no difference.
	idle := p.without(owners)
	return append(all, &limits{Problem: idle, node: node, used: idle.usedCounters(idle.Allocated), with: idle.withLimits, results: results}), nil
}

func nothing(counter) bool { return false }

// solve reports whether the claims fit if only the counters that limited selects have limits. It stores the allocation.
func (l *limits) solve(ctx context.Context, limited func(counter) bool) (bool, error) {
	p := l.with(limited)
	results, err := p.fits(ctx, l.node, p.Claims, p.Allocated)
	if results != nil {
		l.results = results
	}
	return results != nil, err
}

// withUse returns the problem after two changes: devices in use consume nothing, and limited counters lack the amounts in use.
func (p *Problem) withUse(inUse sets.Set[structured.DeviceID], used map[counter]resource.Quantity, limited func(counter) bool) *Problem {
	return cmp.Or(p.edited(func(slice *resourceapi.ResourceSlice) bool {
		return len(slice.Spec.SharedCounters) > 0 || slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return len(d.ConsumesCounters) > 0 })
	}, func(spec *resourceapi.ResourceSliceSpec) {
		for i := range spec.Devices {
			if inUse.Has(structured.MakeDeviceID(spec.Driver, spec.Pool.Name, spec.Devices[i].Name)) {
				spec.Devices[i].ConsumesCounters = nil
			}
		}
		for _, set := range spec.SharedCounters {
			for name, has := range set.Counters {
				if c := (counter{spec.Driver, spec.Pool.Name, set.Name, name}); limited(c) {
					has.Value.Sub(used[c])
					set.Counters[name] = has
				}
			}
		}
	}), p)
}

// withLimits returns the problem with devices that consume only limited counters.
func (p *Problem) withLimits(limited func(counter) bool) *Problem {
	return cmp.Or(p.edited(func(slice *resourceapi.ResourceSlice) bool {
		return slices.ContainsFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return len(d.ConsumesCounters) > 0 })
	}, func(spec *resourceapi.ResourceSliceSpec) {
		for i := range spec.Devices {
			d := &spec.Devices[i]
			d.ConsumesCounters = slices.DeleteFunc(d.ConsumesCounters, func(consumption resourceapi.DeviceCounterConsumption) bool {
				for name := range consumption.Counters {
					if !limited(counter{spec.Driver, spec.Pool.Name, consumption.CounterSet, name}) {
						delete(consumption.Counters, name)
					}
				}
				return len(consumption.Counters) == 0
			})
		}
	}), p)
}

// alone returns the counters that block the claims alone.
func (l *limits) alone(ctx context.Context) (alone []string, err error) {
	// If a counter blocks alone, every set exceeds it. So only the counters that one set exceeds need a search.
	first := l.exceeded(l.results)
	for _, c := range sortedCounters(first) {
		fits, err := l.fitsWith(ctx, func(o counter) bool { return o == c })
		if err != nil {
			return nil, err
		}
		if !fits {
			alone = append(alone, first[c])
		}
	}
	return alone, nil
}

func (l *limits) fitsWith(ctx context.Context, limited func(counter) bool) (bool, error) {
	p := l.with(limited)
	results, err := p.fits(ctx, l.node, p.Claims, p.Allocated)
	return results != nil, err
}

// conflict returns a minimal set of counters that block the claims together, or nil if the claims fit with all limits.
func (l *limits) conflict(ctx context.Context) ([]string, error) {
	rest := l.counterNames()
	if len(rest) > maxConflict {
		first := l.exceeded(l.results)
		var all []string
		for _, c := range sortedCounters(first) {
			all = append(all, first[c])
		}
		return all, nil
	}
	limited := func(c counter) bool { return slices.Contains(rest, c) }
	if fits, err := l.fitsWith(ctx, limited); fits || err != nil {
		return nil, err
	}
	texts := map[counter]string{}
	for i := 0; i < len(rest); {
		c := rest[i]
		found, err := l.solve(ctx, func(o counter) bool { return o != c && limited(o) })
		switch {
		case err != nil:
			return nil, err
		case found:
			// The message for c is about the last set found, which exceeds no other counter.
			texts[c] = l.exceeded(l.results)[c]
			i++
		default:
			rest = slices.Delete(slices.Clone(rest), i, i+1)
		}
	}
	var all []string
	for _, c := range rest {
		all = append(all, texts[c])
	}
	return all, nil
}

// counterNames returns all counters of the pools.
func (l *limits) counterNames() []counter {
	all := map[counter]string{}
	l.eachCounter(func(c counter, _ resource.Quantity) { all[c] = "" })
	return sortedCounters(all)
}

func (p *Problem) eachCounter(f func(counter, resource.Quantity)) {
	for _, slice := range p.Slices {
		for _, set := range slice.Spec.SharedCounters {
			for name, has := range set.Counters {
				f(counter{slice.Spec.Driver, slice.Spec.Pool.Name, set.Name, name}, has.Value)
			}
		}
	}
}

func sortedCounters(of map[counter]string) []counter {
	all := make([]counter, 0, len(of))
	for c := range of {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b counter) int {
		return cmp.Or(cmp.Compare(a.driver, b.driver), cmp.Compare(a.pool, b.pool), cmp.Compare(a.set, b.set), cmp.Compare(a.name, b.name))
	})
	return all
}

// exceeded maps the counters that are too small for both results and the devices in use to a message.
func (l *limits) exceeded(results []resourceapi.AllocationResult) map[counter]string {
	wanted := map[counter]resource.Quantity{}
	for id, of := range l.devicesOf(results) {
		if !ptr.Deref(of.result.AdminAccess, false) {
			consume(wanted, id, of.device)
		}
	}
	all := map[counter]string{}
	l.eachCounter(func(c counter, has resource.Quantity) {
		want, left := wanted[c], has.DeepCopy()
		switch left.Sub(l.used[c]); {
		case want.Cmp(has) > 0:
			all[c] = fmt.Sprintf("counter %s of counter set %s of pool %s/%s: %s needed, %s in total", c.name, c.set, c.driver, c.pool, want.String(), has.String())
		case want.Cmp(left) > 0:
			all[c] = fmt.Sprintf("counter %s of counter set %s of pool %s/%s: %s needed, %s of %s free", c.name, c.set, c.driver, c.pool, want.String(), left.String(), has.String())
		}
	})
	return all
}

// usedCounters returns the amounts that the devices of the claims consume.
func (p *Problem) usedCounters(claims []*resourceapi.ResourceClaim) map[counter]resource.Quantity {
	having := p.with(func(p *Problem) { p.Allocated = claims })
	ids := sets.New[structured.DeviceID]()
	having.eachAllocated(func(id structured.DeviceID, _ *resourceapi.DeviceRequestAllocationResult) { ids.Insert(id) })
	used := map[counter]resource.Quantity{}
	for id, of := range p.devices(ids.Has) {
		consume(used, id, of.device)
	}
	return used
}

func consume(sums map[counter]resource.Quantity, id structured.DeviceID, device *resourceapi.Device) {
	for _, consumption := range device.ConsumesCounters {
		for name, amount := range consumption.Counters {
			c := counter{id.Driver.String(), id.Pool.String(), consumption.CounterSet, name}
			sum := sums[c]
			sum.Add(amount.Value)
			sums[c] = sum
		}
	}
}
