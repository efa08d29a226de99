// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/machine"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

// ask is what people want of a machine that exists, in Go: the claim of a page says it in CEL.
type ask struct {
	// page and template say where the claim is; a pod with an extended resource is a template,
	// too.
	page, template string
	// seed is of the nodes that it is tried on: what the page says of an ask does not change when
	// another one comes or goes.
	seed uint64
	// machine is the model, unless on makes another one.
	machine string
	on      func() topology.Topology
	// title is what the other one is called.
	title string
	// what is asked for, in a few words.
	what  string
	wants []want
	// also are other counts with which the claim is tried, in the order of wants.
	also [][]int
	// plain: matchAttribute says it.
	plain bool
	// holds judges a set that has as many devices as are wanted, in the order of wants.
	holds func(set []topology.Device) bool
	// fragmented are devices that leave no set when they are in use, although enough are free.
	// The page has a row about it; claims that differ in where the constraint stands have it once.
	fragmented []string
	// drawn: the page draws the node with these devices in use, and has the event.
	drawn bool
	// today is the claim of testdata/today.yaml for it, empty where the ask is one of another
	// template, too. pinnedTo says what it has in it that there is one of.
	today, pinnedTo string
}

// want is a request.
type want struct {
	driver string
	count  int
	// of the driver's devices those may be taken for which it is true, nil: all.
	of func(topology.Device) bool
	// alone judges the devices of this request, which spares those of the next if it is false:
	// nil is true.
	alone func(set []topology.Device) bool
	// cpus are taken of a device that is shared.
	cpus int64
}

func (w want) may(d topology.Device) bool {
	return d.Driver == w.driver && (w.of == nil || w.of(d))
}

// judges are the functions that testdata/asks.yaml names, and models those that make a topology.
var (
	judges = map[string]func([]topology.Device) bool{
		"allCPUsAtGPUs": allCPUsAtGPUs, "areWholeCores": areWholeCores, "cpusAtGPUs": cpusAtGPUs, "cpusAtGPUsAndRails": cpusAtGPUsAndRails,
		"efasOfNeurons": efasOfNeurons, "haveNUMANodeInCommon": haveNUMANodeInCommon, "interfacesHalfOnEach": interfacesHalfOnEach,
		"interfacesOfOneNUMANode": interfacesOfOneNUMANode, "isBlockOfItsSize": isBlockOfItsSize, "isHalfOfTorus": isHalfOfTorus,
		"isSquareOfTorus": isSquareOfTorus, "ofOneCPUOfGaudi": ofOneCPUOfGaudi, "ofOneCPUOfGaudiIfThereIsRoom": ofOneCPUOfGaudiIfThereIsRoom,
		"ofOneProfile": ofOneProfile, "ofOneRoot": ofOneRoot, "onFewRoots": onFewRoots, "oneInterfaceEach": oneInterfaceEach,
		"onOneNUMANodeOfTray": onOneNUMANodeOfTray, "onOneSocketOfHGXIfThereIsRoom": onOneSocketOfHGXIfThereIsRoom, "twoGPUsEach": twoGPUsEach,
	}
	models = map[string]func() topology.Topology{"gpusAndCores": gpusAndCores, "twoSockets": twoSockets}
)

// asks are those of testdata/asks.yaml, in the order of the pages.
var asks = func() (asks []ask) {
	var said []struct {
		Page, Template, Machine, Model, Title, What, Holds, Today, PinnedTo string

		Seed         uint64
		Also         [][]int
		Plain, Drawn bool
		Fragmented   []string
		Wants        []struct {
			Driver, Alone string
			Count         int
			CPUs          int64
			RDMA          bool
		}
	}
	content, err := os.ReadFile(filepath.Join("testdata", "asks.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(content, &said)
	}
	if err != nil {
		panic(err)
	}
	judge := func(name string) func([]topology.Device) bool {
		if name != "" && judges[name] == nil {
			panic("no judge " + name)
		}
		return judges[name]
	}
	for _, s := range said {
		a := ask{
			page: s.Page, template: s.Template, seed: s.Seed, machine: s.Machine, on: models[s.Model], title: s.Title, what: s.What, also: s.Also,
			plain: s.Plain, holds: judge(s.Holds), fragmented: s.Fragmented, drawn: s.Drawn, today: s.Today, pinnedTo: s.PinnedTo,
		}
		for _, w := range s.Wants {
			of := map[bool]func(topology.Device) bool{true: isRDMA}[w.RDMA]
			a.wants = append(a.wants, want{driver: w.Driver, count: w.Count, cpus: w.CPUs, of: of, alone: judge(w.Alone)})
		}
		asks = append(asks, a)
	}
	return asks
}()

// sized is the ask with other counts.
func (a ask) sized(counts []int) ask {
	a.wants = slices.Clone(a.wants)
	for i, count := range counts {
		a.wants[i].count = count
	}
	return a
}

// bench is an ask on a node, with all sets that are right in the order that the allocator
// promises: requests as they stand, and for each the devices as they are published.
type bench struct {
	ask
	topology topology.Topology
	slices   []*resourceapi.ResourceSlice
	right    []shape.Set
}

func newBench(t *testing.T, a ask) *bench {
	t.Helper()
	b := &bench{ask: a}
	if a.on != nil {
		b.machine, b.topology = a.title, a.on()
	} else {
		m, err := machine.ByName(a.machine)
		require.NoError(t, err)
		b.topology = m.Topology(nodeName)
	}
	var err error
	b.slices, err = b.topology.ResourceSlices(nodeName)
	require.NoError(t, err)
	require.LessOrEqual(t, len(b.topology.Devices), 64, "a set has 64 bits")
	b.enumerate(nil, 0, 0)
	require.NotEmpty(t, b.right, "no set is right on a machine where all devices are free")
	return b
}

// enumerate goes through all sets, dumb and in order, with those chosen for the requests before.
func (b *bench) enumerate(chosen []int, request, from int) {
	if request == len(b.wants) {
		var places shape.Set
		for _, at := range chosen {
			places |= 1 << at
		}
		if b.holds(b.devices(chosen)) {
			b.right = append(b.right, places)
		}
		return
	}
	before := 0
	for _, w := range b.wants[:request] {
		before += w.count
	}
	if len(chosen) == before+b.wants[request].count {
		if alone := b.wants[request].alone; alone != nil && !alone(b.devices(chosen[before:])) {
			return
		}
		b.enumerate(chosen, request+1, 0)
		return
	}
	for i := from; i < len(b.topology.Devices); i++ {
		if b.wants[request].may(b.topology.Devices[i]) && !slices.Contains(chosen, i) {
			b.enumerate(append(slices.Clone(chosen), i), request, i+1)
		}
	}
}

func (b *bench) devices(places []int) []topology.Device {
	devices := make([]topology.Device, len(places))
	for i, at := range places {
		devices[i] = b.topology.Devices[at]
	}
	return devices
}

// first is the first right set of which nothing is in use, 0 if there is none: leaving out
// sets does not change the order of the others.
func (b *bench) first(inUse shape.Set) shape.Set {
	for _, set := range b.right {
		if set&inUse == 0 {
			return set
		}
	}
	return 0
}

// counts are those of the requests.
func (b *bench) counts() []int {
	var counts []int
	for _, w := range b.wants {
		counts = append(counts, w.count)
	}
	return counts
}

// candidates are the devices that some request may get.
func (b *bench) candidates() shape.Set {
	var set shape.Set
	for i, d := range b.topology.Devices {
		if slices.ContainsFunc(b.wants, func(w want) bool { return w.may(d) }) {
			set |= 1 << i
		}
	}
	return set
}

func (b *bench) names(set shape.Set) []string {
	var names []string
	for i := range set.All() {
		names = append(names, b.topology.Devices[i].Name)
	}
	return names
}

func (b *bench) places(t *testing.T, names []string) shape.Set {
	t.Helper()
	var set shape.Set
	for _, name := range names {
		i := slices.IndexFunc(b.topology.Devices, func(d topology.Device) bool { return d.Name == name })
		require.GreaterOrEqual(t, i, 0, "%s has no device %s", b.machine, name)
		set |= 1 << i
	}
	return set
}

// asksOf makes the examples of a page from what is asked of its machines.
func asksOf(t *testing.T, page string) []*example {
	t.Helper()
	var examples []*example
	for _, a := range asks {
		if a.page == page {
			examples = append(examples, newBench(t, a).example(t))
		}
	}
	require.NotEmpty(t, examples, page)
	return examples
}

// enough tells whether each request finds as many devices as it wants.
func (b *bench) enough(inUse shape.Set) bool {
	return !slices.ContainsFunc(b.wants, func(w want) bool {
		free := 0
		for i, d := range b.topology.Devices {
			if w.may(d) && !inUse.Has(i) {
				free++
			}
		}
		return free < w.count
	})
}

// example is tried with all devices free, with some in use that were picked at random, and with
// the fragmented ones.
func (b *bench) example(t *testing.T) *example {
	e := onTopology(t, b.template, b.topology)
	e.asked, e.plain, e.wants = true, b.plain, b.wants
	e.occupancies = []shape.Occupancy{
		{Name: shape.Empty},
		{Name: "a quarter in use", InUse: b.sample(1, 1./4, func(inUse shape.Set) bool { return b.first(inUse) != 0 })},
		{Name: "half in use", InUse: b.sample(2, 1./2, b.enough)},
	}
	if b.fragmented == nil {
		e.occupancies = append(e.occupancies, shape.Occupancy{Name: shape.Unsatisfiable, InUse: b.places(t, b.hitting())})
	} else {
		e.told, e.drawn = true, b.drawn
		inUse := b.places(t, b.fragmented)
		require.Zero(t, b.first(inUse), "%s: %v is still free", b.template, b.names(b.first(inUse)))
		require.True(t, b.enough(inUse), "%s: a request has too few devices, whatever they are", b.template)
		e.occupancies = append(e.occupancies, shape.Occupancy{Name: shape.Unsatisfiable, InUse: inUse})
	}
	e.holds = func([]string) bool { return true } // the set itself is compared
	e.fits = func(o shape.Occupancy) bool { return b.first(o.InUse) != 0 }
	e.want = func(o shape.Occupancy) []string { return b.names(b.first(o.InUse)) }
	return e
}

// random are devices that are in use, each with the same probability.
func (b *bench) random(r *rand.Rand, probability float64) shape.Set {
	var inUse shape.Set
	for i := range b.topology.Devices {
		if r.Float64() < probability {
			inUse |= 1 << i
		}
	}
	return inUse & b.candidates()
}

// sample is the first that is accepted.
func (b *bench) sample(seed uint64, probability float64, accepted func(shape.Set) bool) shape.Set {
	r := newRandom(seed)
	for {
		if inUse := b.random(r, probability); accepted(inUse) {
			return inUse
		}
	}
}

// newRandom repeats itself in every run.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(0xa5c, seed)) }

// hitting are devices of which each right set has one.
func (b *bench) hitting() []string {
	var inUse shape.Set
	for set := b.first(inUse); set != 0; set = b.first(inUse) {
		for i := range set.All() {
			inUse |= 1 << i
			break
		}
	}
	return b.names(inUse)
}

// ofOneDevice are attributes of which there is one value for each device, and numberOf finds a
// number that somebody wrote down of devices or of their NUMA nodes.
var (
	ofOneDevice = []resourceapi.QualifiedName{
		"resource.kubernetes.io/pciBusID", "dra.net/pciAddress", "pciAddress", "pciAddr",
		"uuid", "serial", "deviceID", "dra.net/ifName", "dra.net/rdmaDevice",
	}
	numberOf = regexp.MustCompile(`(numaNode|numa|deviceId|moduleIdx|index|cardIndex)\)? (==|\\u003c|\\u003e|in) ?\[?\d`)
)

// TestAsksNameNoDevice: a claim that names a device, or has its address or number, is one that
// waits for it.
func TestAsksNameNoDevice(t *testing.T) {
	today := todaysTemplates(t)
	pinned := 0
	for _, a := range asks {
		b := newBench(t, a)
		require.Empty(t, b.pins(t, readHardwarePage(t, a.page).templates[a.template]), "%s: %s", a.page, a.template)
		if a.today != "" && len(b.pins(t, today[a.today])) > 0 {
			pinned++
		}
	}
	require.Greater(t, pinned, 10, "today's claims are pinned, else this test shows nothing")
}

// pins are what in a claim speaks of one device.
func (b *bench) pins(t *testing.T, template *resourceapi.ResourceClaimTemplate) []string {
	t.Helper()
	require.NotNil(t, template)
	content, err := json.Marshal(template.Spec)
	require.NoError(t, err)
	pins := numberOf.FindAllString(string(content), -1)
	for _, d := range b.topology.Devices {
		values := []string{d.Name}
		for _, name := range ofOneDevice {
			if value := d.Attributes[name].StringValue; value != nil {
				values = append(values, *value)
			}
		}
		for _, value := range values {
			if regexp.MustCompile(`\b` + regexp.QuoteMeta(value) + `\b`).Match(content) {
				pins = append(pins, value)
			}
		}
	}
	slices.Sort(pins)
	return slices.Compact(pins)
}
