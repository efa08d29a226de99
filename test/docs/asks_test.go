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

	"github.com/celset/celset/internal/machine"
	"github.com/celset/celset/internal/testing/shape"
	"github.com/celset/celset/internal/topology"
)

// An ask is a typical request for devices of a real machine, with a Go function that judges the result. A claim on a page
// expresses the same request in CEL.
type ask struct {
	// page and template name the page and the template on it. A pod with an extended resource counts as a template, too.
	page, template string
	// seed is the random seed for the occupancies of this ask. With its own seed, an ask does not change when another ask is
	// added or removed.
	seed uint64
	// machine is the name of a machine model. If on is not nil, it returns the topology instead.
	machine string
	on      func() topology.Topology
	// title is the name of the topology that on returns.
	title string
	// what describes the ask in a few words, for the page.
	what  string
	wants []want
	// also lists further numbers of devices to test. Each entry has a number for each of wants.
	also [][]int
	// plain is set if matchAttribute suffices, so that the claim needs no CEL constraint.
	plain bool
	// holds reports whether a set is right. The set has the requested numbers of devices, in the order of wants.
	holds func(set []topology.Device) bool
	// fragmented are devices in use in the page's example of fragmentation: enough devices are free, but no right set. It is nil
	// for a claim without a row in the table of costs. A claim shares the row of a claim with the same expression.
	fragmented []string
	// drawn is set if the page shows a drawing of the node with the fragmented devices in use, and the event of a pod there.
	drawn bool
	// today is the name of a claim in testdata/today.yaml, which requests the same devices without celset. If several asks
	// request the same devices, only one of them has this field. pinnedTo describes the devices that the claim has to name.
	today, pinnedTo string
}

// A want is one request of an ask.
type want struct {
	driver string
	count  int
	// of selects the driver's devices that may be taken. Nil selects all.
	of func(topology.Device) bool
	// alone reports whether the devices of this request alone can be part of a right set. It lets the exhaustive search stop
	// early. Nil accepts all.
	alone func(set []topology.Device) bool
	// cpus is the number of CPUs that the request consumes of a shared device.
	cpus int64
}

func (w want) may(d topology.Device) bool {
	return d.Driver == w.driver && (w.of == nil || w.of(d))
}

// judges maps names in testdata/asks.yaml to functions that judge sets. models maps names there to functions that return a
// topology.
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

// asks are the asks in testdata/asks.yaml, in the order of the pages.
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

// sized returns the ask with other numbers of devices.
func (a ask) sized(counts []int) ask {
	a.wants = slices.Clone(a.wants)
	for i, count := range counts {
		a.wants[i].count = count
	}
	return a
}

// A bench is an ask on the devices of a node. right lists all right sets in the allocator's order: by request as listed in the
// claim, then by device as published.
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

// enumerate appends all right sets that contain the chosen devices. It continues with the given request, and with devices from
// the index from.
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

// first returns the first right set that contains no device in use, or the empty set.
func (b *bench) first(inUse shape.Set) shape.Set {
	for _, set := range b.right {
		if set&inUse == 0 {
			return set
		}
	}
	return 0
}

// counts returns the requested number of devices for each request.
func (b *bench) counts() []int {
	var counts []int
	for _, w := range b.wants {
		counts = append(counts, w.count)
	}
	return counts
}

// candidates returns the devices that some request may get.
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

// asksOf returns an example for each ask of a page.
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

// enough reports whether enough devices are free for each request, whether or not they form a right set.
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

// example returns an example with three occupancies: all devices free, random devices in use, and the fragmented devices in
// use.
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
		e.inCosts, e.drawn = true, b.drawn
		inUse := b.places(t, b.fragmented)
		require.Zero(t, b.first(inUse), "%s: %v is still free", b.template, b.names(b.first(inUse)))
		require.True(t, b.enough(inUse), "%s: a request has too few devices, whatever they are", b.template)
		e.occupancies = append(e.occupancies, shape.Occupancy{Name: shape.Unsatisfiable, InUse: inUse})
	}
	e.holds = func([]string) bool { return true } // the test compares the set itself
	e.fits = func(o shape.Occupancy) bool { return b.first(o.InUse) != 0 }
	e.want = func(o shape.Occupancy) []string { return b.names(b.first(o.InUse)) }
	return e
}

// random returns a random set of devices in use. Each device is in use with the given probability.
func (b *bench) random(r *rand.Rand, probability float64) shape.Set {
	var inUse shape.Set
	for i := range b.topology.Devices {
		if r.Float64() < probability {
			inUse |= 1 << i
		}
	}
	return inUse & b.candidates()
}

// sample generates occupancies until one is accepted, and returns it.
func (b *bench) sample(seed uint64, probability float64, accepted func(shape.Set) bool) shape.Set {
	r := newRandom(seed)
	for {
		if inUse := b.random(r, probability); accepted(inUse) {
			return inUse
		}
	}
}

// newRandom returns a generator with the same sequence in every run.
func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(0xa5c, seed)) }

// hitting returns devices that together hit every right set: if they are in use, no right set is free.
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

// ofOneDevice lists attributes whose value is different for each device. numberOf matches a number in an expression that
// denotes a device or its NUMA node.
var (
	ofOneDevice = []resourceapi.QualifiedName{
		"resource.kubernetes.io/pciBusID", "dra.net/pciAddress", "pciAddress", "pciAddr",
		"uuid", "serial", "deviceID", "dra.net/ifName", "dra.net/rdmaDevice",
	}
	numberOf = regexp.MustCompile(`(numaNode|numa|deviceId|moduleIdx|index|cardIndex)\)? (==|\\u003c|\\u003e|in) ?\[?\d`)
)

// TestAsksNameNoDevice checks that no claim on the pages names a device, its address or its number. Such a claim would wait for
// this device although others are free.
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

// pins returns the parts of a claim that refer to one device.
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
