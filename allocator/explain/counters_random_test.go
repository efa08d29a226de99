// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/topology"
)

// amounts maps "counterset/counter" to a quantity.
type amounts map[string]int64

// partition is a device that consumes counters.
type partition struct {
	profile  string
	x        int64
	consumes amounts
	// owner is the number of the claim that has the device, or 0 if the device is free. If admin is true, the claim has only
	// admin access and the device counts as free.
	owner int
	admin bool
}

// wish is a request. Without a profile it accepts any device.
type wish struct {
	count   int64
	profile string
}

// partitioned is a random pool of partitions with a claim for some of them.
type partitioned struct {
	has        amounts
	partitions []partition
	wishes     []wish
	// constraint is empty, "profile" for a matchAttribute constraint, or a CEL expression.
	constraint string
	most       int64
	// sets lists all sets that the claim could get, ignoring counters and devices in use. A set has a bit for each partition.
	sets []uint
}

func drawPartitioned(t *rapid.T) *partitioned {
	w := &partitioned{has: amounts{}}
	for set := range rapid.IntRange(1, 2).Draw(t, "counter sets") {
		for c := range rapid.IntRange(1, 2).Draw(t, "counters") {
			w.has[fmt.Sprintf("card-%d/slots-%d", set, c)] = rapid.Int64Range(2, 5).Draw(t, "has")
		}
	}
	used := amounts{}
	for range rapid.IntRange(3, 7).Draw(t, "partitions") {
		p := partition{profile: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "profile"), x: rapid.Int64Range(0, 2).Draw(t, "x"), consumes: amounts{}}
		fits := true
		for _, c := range slices.Sorted(maps.Keys(w.has)) {
			if n := rapid.SampledFrom([]int64{0, 0, 1, 1, 2, 3}).Draw(t, "consumes"); n > 0 {
				p.consumes[c], fits = n, fits && used[c]+n <= w.has[c]
			}
		}
		p.owner, p.admin = rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "owner"), rapid.IntRange(0, 7).Draw(t, "admin of eight") == 7
		if p.owner > 0 && !p.admin {
			if !fits {
				p.owner = 0 // only allocated devices are in use
			} else {
				used.add(p.consumes)
			}
		}
		w.partitions = append(w.partitions, p)
	}
	for range rapid.IntRange(1, 2).Draw(t, "requests") {
		w.wishes = append(w.wishes, wish{rapid.Int64Range(1, 2).Draw(t, "count"), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "profile")})
	}
	w.constraint, w.most = rapid.SampledFrom([]string{"", "", "profile", "sum"}).Draw(t, "constraint"), rapid.Int64Range(0, 3).Draw(t, "most")
	w.choose(0, 0, w.wishes[0].count, 0)
	return w
}

func (a amounts) add(more amounts) {
	for c, n := range more {
		a[c] += n
	}
}

// choose completes the partial set in all ways and adds the complete sets to w.sets. Request r still needs left devices with
// index i or higher, and all later requests still need all their devices.
func (w *partitioned) choose(set uint, r int, left int64, i int) {
	if left == 0 {
		if r++; r == len(w.wishes) {
			if w.satisfies(set) && !slices.Contains(w.sets, set) {
				w.sets = append(w.sets, set)
			}
			return
		}
		left, i = w.wishes[r].count, 0
	}
	for ; i < len(w.partitions); i++ {
		if profile := w.wishes[r].profile; set&(1<<i) == 0 && (profile == "" || profile == w.partitions[i].profile) {
			w.choose(set|1<<i, r, left-1, i+1)
		}
	}
}

func (w *partitioned) satisfies(set uint) bool {
	profiles, sum := map[string]bool{}, int64(0)
	for i, p := range w.partitions {
		if set&(1<<i) != 0 {
			profiles[p.profile] = true
			sum += p.x
		}
	}
	return (w.constraint != "profile" || len(profiles) == 1) && (w.constraint != "sum" || sum <= w.most)
}

// inUse returns the set of devices in use, without devices of the claims that gone selects.
func (w *partitioned) inUse(gone func(owner int) bool) (set uint) {
	for i, p := range w.partitions {
		if p.owner > 0 && !p.admin && !gone(p.owner) {
			set |= 1 << i
		}
	}
	return set
}

func (w *partitioned) consumed(set uint) amounts {
	sum := amounts{}
	for i, p := range w.partitions {
		if set&(1<<i) != 0 {
			sum.add(p.consumes)
		}
	}
	return sum
}

// fits reports whether some set has no taken devices and stays within the limits. A counter that is not in limits is unlimited.
func (w *partitioned) fits(taken uint, limits amounts) bool {
	return slices.ContainsFunc(w.sets, func(set uint) bool {
		if set&taken != 0 {
			return false
		}
		for c, n := range w.consumed(set) {
			if limit, isLimited := limits[c]; isLimited && n > limit {
				return false
			}
		}
		return true
	})
}

// minus returns a minus used. It does not change the amount of a counter if of(counter) is false.
func (a amounts) minus(used amounts, of func(string) bool) amounts {
	left := amounts{}
	for c, n := range a {
		if left[c] = n; of(c) {
			left[c] -= used[c]
		}
	}
	return left
}

func (w *partitioned) problem(t testing.TB) *explain.Problem {
	claim := wanting("c", 1)
	claim.Spec.Devices.Requests = nil
	for i, r := range w.wishes {
		exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: r.count}
		if r.profile != "" {
			exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.attributes['%s'].profile == '%s'", driver, r.profile)}}}
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{Name: fmt.Sprint("r", i), Exactly: exactly})
	}
	switch w.constraint {
	case "profile":
		claim = matching(claim, driver+"/profile")
	case "sum":
		claim = withConstraint(claim, "sum", fmt.Sprintf("devices.map(d, d.attributes['%s'].x).sum() <= %d", driver, w.most))
	}
	p := problem(t, topology.Topology{}, claim)
	p.Features, p.NamesAll = structured.Features{PartitionableDevices: true, AdminAccess: true}, true
	spec := resourceapi.ResourceSliceSpec{Driver: driver, NodeName: &node.Name, Pool: resourceapi.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 2}}
	sets, devices := spec, spec
	sets.SharedCounters = nil
	for _, set := range counterSetsOf(w.has) {
		sets.SharedCounters = append(sets.SharedCounters, resourceapi.CounterSet{Name: set.CounterSet, Counters: set.Counters})
	}
	owners := map[int]*resourceapi.ResourceClaim{}
	for i, d := range w.partitions {
		name := fmt.Sprint("device-", i)
		devices.Devices = append(devices.Devices, resourceapi.Device{
			Name: name, ConsumesCounters: counterSetsOf(d.consumes),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"profile": {StringValue: &d.profile}, "x": {IntValue: &d.x}},
		})
		if d.owner == 0 {
			continue
		}
		if owners[d.owner] == nil {
			owners[d.owner] = owning(fmt.Sprint("owner-", d.owner))
			p.Allocated = append(p.Allocated, owners[d.owner])
		}
		result := resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: driver, Pool: node.Name, Device: name}
		if d.admin {
			result.AdminAccess = ptr.To(true)
		}
		of := &owners[d.owner].Status.Allocation.Devices
		of.Results = append(of.Results, result)
	}
	p.Slices = []*resourceapi.ResourceSlice{{Spec: sets}, {Spec: devices}}
	p.Slices[0].Name, p.Slices[1].Name = "counters", "devices"
	return p
}

func counterSetsOf(of amounts) (all []resourceapi.DeviceCounterConsumption) {
	for _, c := range slices.Sorted(maps.Keys(of)) {
		set, name, _ := strings.Cut(c, "/")
		if len(all) == 0 || all[len(all)-1].CounterSet != set {
			all = append(all, resourceapi.DeviceCounterConsumption{CounterSet: set, Counters: map[string]resourceapi.Counter{}})
		}
		all[len(all)-1].Counters[name] = resourceapi.Counter{Value: *resource.NewQuantity(of[c], resource.DecimalSI)}
	}
	return all
}

var namedCounter = regexp.MustCompile(`counter (\S+) of counter set (\S+) of pool \S+: (\d+) needed, (?:(\d+) of (\d+) free|(\d+) in total)`)

// namedCounters returns the counters in the message of an explanation, with the wanted amounts.
func namedCounters(t require.TestingT, e *explain.Explanation, w *partitioned, used amounts) amounts {
	named := amounts{}
	for _, cause := range e.Causes {
		require.Equal(t, explain.CauseCounters, cause.Kind)
		for _, at := range namedCounter.FindAllStringSubmatch(cause.Message, -1) {
			number := func(i int) int64 {
				n, err := strconv.ParseInt(at[i], 10, 64)
				require.NoError(t, err)
				return n
			}
			c := at[2] + "/" + at[1]
			named[c] = number(3)
			if at[6] != "" {
				require.Equal(t, w.has[c], number(6), e)
				require.Greater(t, number(3), w.has[c], e)
				continue
			}
			require.Equal(t, w.has[c], number(5), e)
			require.Equal(t, w.has[c]-used[c], number(4), e)
			require.Greater(t, number(3), number(4), e)
		}
		require.NotEmpty(t, named, "%s\n%+v", e, w)
	}
	return named
}

// TestCountersByBruteForce compares the counters that an explanation names with an enumeration of all sets of devices.
func TestCountersByBruteForce(t *testing.T) {
	seen := map[string]int{}
	cases.CheckN(t, cases.Of(400, 10_000), func(rt *rapid.T) {
		w := drawPartitioned(rt)
		e, err := w.problem(t).Node(t.Context(), node)
		require.NoError(rt, err)
		none, all := func(int) bool { return false }, func(int) bool { return true }
		taken, used := w.inUse(none), w.consumed(w.inUse(none))
		every := func(string) bool { return true }
		require.Equal(rt, w.fits(taken, w.has.minus(used, every)), e.Fits, e)
		if e.Fits {
			return
		}
		named := namedCounters(rt, e, w, used)
		switch {
		case w.fits(taken, nil):
			// Enough devices are free, so only counters prevent the allocation.
			seen[w.requireBlocking(rt, e, named)]++
		case w.fits(w.inUse(all), w.has):
			seen["in the way"]++
			require.Empty(rt, named, e)
			require.NotEmpty(rt, e.InTheWay, e)
		case w.fits(w.inUse(all), nil):
			seen["never"]++
			w.requireBlocked(rt, e, named, 0, func(limited func(string) bool) amounts {
				return w.has.minus(nil, every).only(limited)
			})
		default:
			seen["impossible"]++
			require.Empty(rt, named, e)
			require.True(rt, e.Never, e)
		}
	})
	t.Log(seen)
	require.Len(t, seen, 7, "the generator has lost a case: %v", seen)
}

// only returns a copy of the amounts. It leaves out a counter if of(counter) is false.
func (a amounts) only(of func(string) bool) amounts {
	left := maps.Clone(a)
	maps.DeleteFunc(left, func(c string, _ int64) bool { return !of(c) })
	return left
}

// requireBlocking checks the counters that keep free devices from the claim. It returns the sets that the message concerns:
// sets that an idle pool allows, sets after the claims in the way are gone, or sets that exceed even an idle pool.
func (w *partitioned) requireBlocking(t *rapid.T, e *explain.Explanation, named amounts) string {
	none := func(int) bool { return false }
	isInTheWay := func(owner int) bool {
		return slices.ContainsFunc(e.InTheWay, func(o explain.Owner) bool { return o.Claim == fmt.Sprint("default/owner-", owner) })
	}
	taken, used := w.inUse(none), w.consumed(w.inUse(none))
	kept := w.inUse(isInTheWay)
	freed := w.consumed(taken &^ kept)
	rest := w.has.minus(w.consumed(kept), func(string) bool { return true })
	type stage struct {
		name   string
		taken  uint
		limits func(limited func(string) bool) amounts
	}
	var stages []stage
	for _, s := range []stage{
		{"used", taken, func(limited func(string) bool) amounts { return w.has.minus(used, limited) }},
		{"freed", kept, func(limited func(string) bool) amounts { return rest.minus(freed, limited) }},
		{"too small", taken, func(limited func(string) bool) amounts {
			return w.has.minus(used, limited).only(limited)
		}},
	} {
		nothing := func(string) bool { return false }
		if w.fits(s.taken, s.limits(nothing)) && (s.name != "freed" || len(e.InTheWay) > 0) {
			stages = append(stages, s)
		}
	}
	for _, s := range stages {
		if len(w.alone(s.taken, s.limits)) > 0 {
			w.requireBlocked(t, e, named, s.taken, s.limits)
			for c := range named {
				require.True(t, s.name == "too small" || used[c] > 0, "%s is not used: %s", c, e)
			}
			return s.name
		}
	}
	// Take the first stage where no set stays within the limits of all counters.
	every := func(string) bool { return true }
	s := stages[slices.IndexFunc(stages, func(s stage) bool { return !w.fits(s.taken, s.limits(every)) })]
	w.requireBlocked(t, e, named, s.taken, s.limits)
	return "together"
}

// alone returns the counters that block alone: no set stays within the limit of the counter.
func (w *partitioned) alone(taken uint, limits func(limited func(string) bool) amounts) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(w.has)), func(c string) bool {
		return w.fits(taken, limits(func(other string) bool { return other == c }))
	})
}

// requireBlocked checks that the message names exactly the counters that block alone. If no counter blocks alone, it must name
// a minimal set of counters that block together.
func (w *partitioned) requireBlocked(t *rapid.T, e *explain.Explanation, named amounts, taken uint, limits func(limited func(string) bool) amounts) {
	names := slices.Sorted(maps.Keys(named))
	if alone := w.alone(taken, limits); len(alone) > 0 {
		require.Equal(t, alone, names, e)
		return
	}
	require.NotEmpty(t, names, e)
	require.False(t, w.fits(taken, limits(func(c string) bool { return slices.Contains(names, c) })), e)
	for _, left := range names {
		require.True(t, w.fits(taken, limits(func(c string) bool { return c != left && slices.Contains(names, c) })), "%s need not be named: %s", left, e)
	}
}
