// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	nodeName  = "node-1"
	otherNode = "node-2"
	zoneLabel = "topology.kubernetes.io/zone"
	rackLabel = "example.com/rack"
	// skipsNodeOperations is the feature that nodes declare if they can skip node operations.
	skipsNodeOperations = "DRAOptionalNodeOperations"
)

func (g *generator) node() {
	g.Node = &v1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   nodeName,
		Labels: map[string]string{zoneLabel: "zone-1", rackLabel: pick(g, "rack-1", "rack-2")},
	}}
	if !g.sometimes() {
		g.Node.Status.DeclaredFeatures = []string{skipsNodeOperations}
	}
}

// A placement selects the nodes of a slice or a device.
type placement struct {
	nodeName *string
	allNodes *bool
	selector *v1.NodeSelector
	// perDevice is for slices only.
	perDevice *bool
}

// placeHere draws a placement that includes the node.
func (g *generator) placeHere() placement {
	switch g.fairly(2) {
	case 0:
		return placement{nodeName: ptr.To(nodeName)}
	case 1:
		return placement{allNodes: ptr.To(true)}
	default:
		return placement{selector: g.nodeSelector("zone-1")}
	}
}

// placeElsewhere draws a placement that excludes the node: another node, a selector that does not match, or an unknown form.
func (g *generator) placeElsewhere() placement {
	switch g.fairly(2) {
	case 0:
		return placement{nodeName: ptr.To(otherNode)}
	case 1:
		return placement{selector: g.nodeSelector("zone-2")}
	case 2:
		return placement{}
	default:
		return placement{allNodes: ptr.To(false)}
	}
}

// nodeSelector draws one term that matches a zone, or a rack in it.
func (g *generator) nodeSelector(zone string) *v1.NodeSelector {
	if g.fault() {
		return g.faultyNodeSelector()
	}
	var term v1.NodeSelectorTerm
	values := []string{zone}
	if g.sometimes() {
		values = pick(g, []string{zone, "zone-3"}, []string{"zone-3", zone})
	}
	term.MatchExpressions = append(term.MatchExpressions,
		v1.NodeSelectorRequirement{Key: zoneLabel, Operator: v1.NodeSelectorOpIn, Values: values})
	if g.sometimes() {
		term.MatchExpressions = append(term.MatchExpressions,
			v1.NodeSelectorRequirement{Key: rackLabel, Operator: v1.NodeSelectorOpExists})
	}
	if g.rarely() {
		term.MatchExpressions = append(term.MatchExpressions,
			v1.NodeSelectorRequirement{Key: rackLabel, Operator: v1.NodeSelectorOpNotIn, Values: []string{"rack-2"}})
	}
	if g.sometimes() {
		term.MatchFields = append(term.MatchFields,
			v1.NodeSelectorRequirement{Key: "metadata.name", Operator: v1.NodeSelectorOpNotIn, Values: []string{otherNode}})
	}
	return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}
}

// faultyNodeSelector returns a selector without terms, with more terms than results support, or with an unknown operator.
func (g *generator) faultyNodeSelector() *v1.NodeSelector {
	term := func(operator v1.NodeSelectorOperator, values ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: zoneLabel, Operator: operator, Values: values}}}
	}
	switch g.between(0, 2) {
	case 0:
		return &v1.NodeSelector{}
	case 1:
		return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			term(v1.NodeSelectorOpExists), term(v1.NodeSelectorOpDoesNotExist)}}
	default:
		return &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term("Near", "zone-1")}}
	}
}

func (p placement) applyToSlice(slice *resourceapi.ResourceSlice) {
	slice.Spec.NodeName, slice.Spec.AllNodes, slice.Spec.NodeSelector = p.nodeName, p.allNodes, p.selector
	slice.Spec.PerDeviceNodeSelection = p.perDevice
}

func (p placement) applyToDevice(device *resourceapi.Device) {
	device.NodeName, device.AllNodes, device.NodeSelector = p.nodeName, p.allNodes, p.selector
}

const latestGeneration = 2

// pools draws one to three pools. Their slices are in random order.
func (g *generator) pools() {
	count := pick(g, 2, 1, 3, 2)
	for i := range count {
		// The third pool has the name of the first but another driver.
		driver, name := drivers[0], poolNames[i%2]
		if i == 2 || i == 1 && g.maybe() {
			driver = drivers[1]
		}
		g.pool(driver, name)
	}
	for i := len(g.Slices) - 1; i > 0; i-- {
		j := g.between(0, i)
		g.Slices[i], g.Slices[j] = g.Slices[j], g.Slices[i]
	}
}

// pool draws the slices of one pool, of the latest generation and sometimes of older or incomplete generations.
func (g *generator) pool(driver, name string) {
	p := &poolDraw{
		generator: g, driver: driver, name: name,
		place:              g.poolPlacement(),
		skipNodeOperations: g.often(usabilityTheme),
		bindingConditions:  g.mostly(usabilityTheme),
	}
	p.sets = p.counterSets()
	slices := make([]*resourceapi.ResourceSlice, 0, 4)
	for range pick(g, 1, 2, 1, 3) {
		slices = append(slices, p.slice(latestGeneration))
	}
	slices = append(slices, p.counterSlices()...)
	count := int64(len(slices))
	if g.oneIn2To(5) {
		count += pick[int64](g, 1, -1)
	}
	for _, slice := range slices {
		slice.Spec.Pool.ResourceSliceCount = count
	}
	g.Slices = append(g.Slices, slices...)
	p.otherGenerations()
}

// A poolDraw is the state while one pool is drawn.
type poolDraw struct {
	*generator
	driver, name string
	place        func() placement
	// names counts the assigned device names.
	names              int
	skipNodeOperations bool
	bindingConditions  bool
	// sets are the shared counters of the pool.
	sets []resourceapi.CounterSet
}

// poolPlacement draws the placement of a pool's slices. Most pools are for the node as a whole, some are spread over nodes, and
// some have nothing for the node.
func (g *generator) poolPlacement() func() placement {
	if g.Scarce || len(g.Slices) == 0 && !g.sometimes() && !g.isAbout(counterTheme, groupTheme) {
		// A case without devices is not worth trying.
		here := g.placeHere()
		return func() placement { return here }
	}
	perDevice := func() placement { return placement{perDevice: ptr.To(true)} }
	switch g.placementKind() {
	default:
		here := g.placeHere()
		return func() placement { return here }
	case 10, 11:
		return func() placement {
			if g.sometimes() {
				return g.placeElsewhere()
			}
			return g.placeHere()
		}
	case 12, 13:
		return perDevice
	case 14:
		return func() placement {
			if g.maybe() {
				return perDevice()
			}
			return g.placeHere()
		}
	case 15:
		return g.placeElsewhere
	}
}

// placementKind usually returns a placement for the node as a whole. Cases about counters prefer pools whose counters are also
// consumed on other nodes.
func (g *generator) placementKind() int {
	if g.isAbout(counterTheme, groupTheme) && g.maybe() {
		return pick(g, 10, 12)
	}
	return g.fairly(4)
}

// otherGenerations adds slices of an older generation, which must be ignored, or of a newer one that is still incomplete.
func (p *poolDraw) otherGenerations() {
	if p.rarely() {
		old := p.slice(latestGeneration - 1)
		old.Spec.Pool.ResourceSliceCount = 1
		p.Slices = append(p.Slices, old)
	}
	if p.oneIn2To(5) {
		p.place = p.placeElsewhere
		if p.maybe() {
			p.place = p.placeHere
		}
		newer := p.slice(latestGeneration + 1)
		newer.Spec.Pool.ResourceSliceCount = int64(pick(p.generator, 1, 2))
		p.Slices = append(p.Slices, newer)
	}
}

// slice draws a slice with devices.
func (p *poolDraw) slice(generation int64) *resourceapi.ResourceSlice {
	slice := p.emptySlice(generation)
	p.place().applyToSlice(slice)
	if p.skipNodeOperations {
		slice.Spec.SkipNodeOperations = []resourceapi.SkipNodeOperation{resourceapi.SkipNodeOperationAll}
	}
	for range min(pick(p.generator, 3, 4, 5, 2, 6, 3, 1, 0), p.MaxDevices-p.devices) {
		slice.Spec.Devices = append(slice.Spec.Devices, p.device(slice))
		p.devices++
	}
	if p.Faults && len(slice.Spec.Devices) > 0 && !p.crowded && !p.isAbout(scarceTheme) &&
		(p.oneIn2To(7) || p.isAbout(alternativesTheme) && p.oneIn2To(4)) {
		p.crowd(slice)
	}
	return slice
}

// emptySlice draws a random name, so that names determine only the order.
func (p *poolDraw) emptySlice(generation int64) *resourceapi.ResourceSlice {
	name := fmt.Sprintf("slice-%02d", p.between(0, 99))
	for i := 0; p.sliceNames.Has(name); i++ {
		name = fmt.Sprintf("slice-more-%02d", i)
	}
	p.sliceNames.Insert(name)
	return &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: p.driver,
			Pool:   resourceapi.ResourcePool{Name: p.name, Generation: generation},
		},
	}
}

func (p *poolDraw) device(slice *resourceapi.ResourceSlice) resourceapi.Device {
	device := resourceapi.Device{
		Name:                     p.deviceName(),
		Attributes:               p.attributes(),
		Capacity:                 p.capacity(),
		Taints:                   p.taints(),
		ConsumesCounters:         p.consumption(),
		AllowMultipleAllocations: p.allowsMultipleAllocations(),
	}
	if ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		p.devicePlacement().applyToDevice(&device)
	}
	if p.bindingConditions && !p.sometimes() {
		device.BindingConditions = []string{"example.com/attached"}
		device.BindingFailureConditions = []string{"example.com/attach-failed"}
	}
	if p.rarely() {
		device.BindsToNode = ptr.To(p.maybe())
	}
	return device
}

// deviceName returns a name that is unique in the pool. Rare duplicates make the pool invalid.
func (p *poolDraw) deviceName() string {
	if p.names == 0 || !p.oneIn2To(8) {
		p.names++
	}
	return fmt.Sprintf("device-%d", p.names)
}

func (p *poolDraw) devicePlacement() placement {
	if p.sometimes() {
		return p.placeElsewhere()
	}
	return p.placeHere()
}

// crowdSize is the maximal number of devices that a crowd adds.
const crowdSize = 34

// crowd fills the slice with copies of its first device, about as many as a claim may get.
func (p *poolDraw) crowd(slice *resourceapi.ResourceSlice) {
	p.crowded = true
	for range p.between(crowdSize-12, crowdSize) {
		device := slice.Spec.Devices[0].DeepCopy()
		p.names++
		device.Name = fmt.Sprintf("device-%d", p.names)
		slice.Spec.Devices = append(slice.Spec.Devices, *device)
	}
}

// The attributes of the drivers, in their own domain.
const (
	attributeIndex   = "index"   // int, the position of the device in its pool
	attributeRow     = "row"     // int
	attributeCol     = "col"     // int
	attributeGroup   = "group"   // string
	attributeModel   = "model"   // string
	attributeHealthy = "healthy" // bool
	attributeVersion = "version" // version
	attributeRack    = "rack"    // string, in the shared domain
	attributeLinks   = "links"   // a list of any type or a scalar, in the shared domain
)

// attributes draws attributes of every type, with qualified and unqualified names. Expressions of CEL constraints rely on index,
// row, col and group.
func (p *poolDraw) attributes() map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	index := int64(p.names - 1)
	if p.rarely() {
		index = int64(p.between(0, 3))
	}
	attributes := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute)
	set := func(name string, value resourceapi.DeviceAttribute) {
		if !p.CELConstraints && p.rarely() {
			return
		}
		attributes[p.attributeName(name)] = value
	}
	set(attributeIndex, intAttribute(index))
	set(attributeRow, intAttribute(int64(p.between(0, 2))))
	set(attributeCol, intAttribute(int64(p.between(0, 2))))
	set(attributeGroup, stringAttribute(pick(p.generator, "group-1", "group-2", "group-2", "group-3")))
	set(attributeModel, p.model())
	set(attributeHealthy, resourceapi.DeviceAttribute{BoolValue: ptr.To(!p.sometimes())})
	set(attributeVersion, resourceapi.DeviceAttribute{VersionValue: ptr.To(pick(p.generator, "1.0.0", "1.2.0"))})
	if p.drawsLists() {
		attributes[sharedDomain+"/"+attributeLinks] = p.links()
	}
	if !p.sometimes() {
		attributes[sharedDomain+"/"+attributeRack] = stringAttribute(pick(p.generator, "rack-1", "rack-2"))
	}
	return attributes
}

func (p *poolDraw) attributeName(id string) resourceapi.QualifiedName {
	if p.sometimes() {
		return resourceapi.QualifiedName(p.driver + "/" + id)
	}
	return resourceapi.QualifiedName(id)
}

// drawsLists reports whether to draw lists. While the feature is off, a list makes the selectors of its device fail.
func (p *poolDraw) drawsLists() bool {
	if !p.Features.ListTypeAttributes && (!p.Faults || !p.isAbout(listTheme) && !p.oneIn2To(3)) {
		return false
	}
	return p.mostly(listTheme)
}

// links draws a short list from a small set of values, so that devices share some.
func (p *poolDraw) links() resourceapi.DeviceAttribute {
	texts := func() []string {
		return pick(p.generator, []string{"a", "b"}, []string{"b", "c"}, []string{"a"}, []string{"c", "d"}, []string{"a", "b", "c"})
	}
	switch p.fairly(4) {
	case 8, 9:
		return resourceapi.DeviceAttribute{IntValues: pick(p.generator, []int64{1, 2}, []int64{2, 3}, []int64{3, 4})}
	case 10:
		return intAttribute(2)
	case 11:
		return resourceapi.DeviceAttribute{BoolValues: pick(p.generator, []bool{true}, []bool{true, false})}
	case 12, 13:
		return resourceapi.DeviceAttribute{VersionValues: pick(p.generator, []string{"1.0.0"}, []string{"1.0.0", "1.2.0"}, []string{"1.2.0"})}
	case 14, 15:
		return stringAttribute(pick(p.generator, "a", "b"))
	default:
		return resourceapi.DeviceAttribute{StringValues: texts()}
	}
}

// model draws a string, or a driver's mistake: another type, a list, or an unknown type. The last two make all selectors fail.
func (p *poolDraw) model() resourceapi.DeviceAttribute {
	switch {
	case p.oneIn2To(5):
		return intAttribute(1)
	case p.fault():
		return resourceapi.DeviceAttribute{StringValues: []string{"a", "b"}}
	case p.fault():
		return resourceapi.DeviceAttribute{}
	default:
		return stringAttribute(pick(p.generator, "model-1", "model-2"))
	}
}

func intAttribute(value int64) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{IntValue: ptr.To(value)}
}

func stringAttribute(value string) resourceapi.DeviceAttribute {
	return resourceapi.DeviceAttribute{StringValue: ptr.To(value)}
}

// The capacities of devices, in the domain of their driver.
const (
	memory    resourceapi.QualifiedName = "memory"
	cores     resourceapi.QualifiedName = "cores"     // may be fractions
	bandwidth resourceapi.QualifiedName = "bandwidth" // requested, but no device has it
)

// capacity draws the capacities of a device. Selectors rely on memory.
func (p *poolDraw) capacity() map[resourceapi.QualifiedName]resourceapi.DeviceCapacity {
	result := map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
		memory: {Value: resource.MustParse(pick(p.generator, "10Gi", "20Gi", "40Gi"))},
	}
	if p.Faults && p.isAbout(capacityTheme) && p.rarely() {
		return nil
	}
	if p.isAbout(fractionTheme) || p.often(capacityTheme) {
		result[cores] = resourceapi.DeviceCapacity{Value: resource.MustParse(pick(p.generator, "4", "2500m", "1500m", "8"))}
	}
	if p.Simple {
		return result
	}
	p.addPolicy(result, memory, p.memoryPolicy)
	p.addPolicy(result, cores, p.coresPolicy)
	return result
}

func (p *poolDraw) addPolicy(to map[resourceapi.QualifiedName]resourceapi.DeviceCapacity, name resourceapi.QualifiedName, policy func() *resourceapi.CapacityRequestPolicy) {
	if capacity, found := to[name]; found && p.mostly(capacityTheme, fractionTheme) {
		capacity.RequestPolicy = policy()
		to[name] = capacity
	}
}

// memoryPolicy draws a policy in whole units. Its default satisfies the policy.
func (p *poolDraw) memoryPolicy() *resourceapi.CapacityRequestPolicy {
	policy := &resourceapi.CapacityRequestPolicy{Default: quantity("2Gi")}
	switch p.fairly(3) {
	case 0:
	case 1:
		policy.ValidValues = []resource.Quantity{resource.MustParse("1Gi"), resource.MustParse("2Gi"), resource.MustParse("8Gi")}
	case 2:
		policy.ValidRange = &resourceapi.CapacityRequestPolicyRange{Min: quantity("1Gi")}
	case 3:
		policy.ValidRange = &resourceapi.CapacityRequestPolicyRange{Min: quantity("1Gi"), Max: quantity("4Gi")}
	default:
		policy.ValidRange = &resourceapi.CapacityRequestPolicyRange{Min: quantity("2Gi"), Step: quantity("2Gi")}
		if p.maybe() {
			policy.ValidRange.Max = quantity("6Gi")
		}
	}
	switch {
	case p.fault():
		policy.Default = quantity("-1Gi")
	case p.fault():
		policy.Default = nil
	case policy.ValidRange != nil && policy.ValidRange.Step == nil && p.fault():
		policy.ValidRange.Min = nil
	}
	return policy
}

// coresPolicy draws a policy in fractions, whose meaning depends on the feature for fractions.
func (p *poolDraw) coresPolicy() *resourceapi.CapacityRequestPolicy {
	policy := &resourceapi.CapacityRequestPolicy{Default: quantity(pick(p.generator, "1", "1500m"))}
	valid := &resourceapi.CapacityRequestPolicyRange{Min: quantity("500m"), Step: quantity("250m")}
	policy.ValidRange = valid
	switch p.fairly(3) {
	case 0:
		policy.ValidRange = nil
		policy.ValidValues = []resource.Quantity{resource.MustParse("500m"), *policy.Default, resource.MustParse("2")}
	case 1:
		valid.Step = nil
	case 2:
		valid.Min, valid.Step = quantity("1"), quantity("500m")
	case 3:
		// These values need more precision than milli units.
		valid.Min = quantity("500500u")
	}
	if p.maybe() {
		valid.Max = quantity(pick(p.generator, "2", "2250m"))
	}
	return policy
}

func quantity(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

// allowsMultipleAllocations draws the device's field of this name.
func (p *poolDraw) allowsMultipleAllocations() *bool {
	switch {
	case p.mostly(capacityTheme, fractionTheme), p.isAbout(counterTheme) && p.maybe():
		return ptr.To(true)
	case p.rarely():
		return ptr.To(false)
	default:
		return nil
	}
}

// capacityRequest draws the capacity that a request wants, which is an error if the feature is off.
func (g *generator) capacityRequest() *resourceapi.CapacityRequirements {
	if !g.Features.ConsumableCapacity {
		if !g.fault() && !(g.Faults && g.isAbout(capacityTheme, fractionTheme) && g.rarely()) {
			return nil
		}
	} else if !g.mostly(capacityTheme, fractionTheme) {
		return nil
	}
	result := &resourceapi.CapacityRequirements{Requests: make(map[resourceapi.QualifiedName]resource.Quantity)}
	if g.maybe() && !g.isAbout(fractionTheme) {
		result.Requests[memory] = resource.MustParse(pick(g, "2Gi", "1Gi", "3Gi", "5Gi", "10Gi", "1500Mi", "50Gi"))
	}
	if g.isAbout(fractionTheme) || g.rarely() {
		result.Requests[cores] = resource.MustParse(pick(g, "1", "600m", "1100m", "1500m", "1750m", "2", "2100m", "3"))
	}
	if g.rarely() && g.maybe() {
		result.Requests[bandwidth] = resource.MustParse("1")
	}
	switch {
	case g.Faults && g.isAbout(fractionTheme) && g.sometimes():
		result.Requests[cores] = resource.MustParse("1100500u") // not in milli units
	case g.Faults && g.oneIn2To(5):
		g.absurdCapacity(result.Requests)
	}
	return result
}

// absurdCapacity requests amounts that overflow or are not positive.
func (g *generator) absurdCapacity(requests map[resourceapi.QualifiedName]resource.Quantity) {
	switch g.fairly(3) {
	case 0:
		requests[memory] = resource.MustParse("8Ei") // more than an int64
	case 1:
		requests[memory] = resource.MustParse("9223372036854775807") // rounding up overflows
	case 2, 3:
		requests[cores] = resource.MustParse("10P") // overflows an int64 in milli units
	case 4:
		requests[memory] = resource.MustParse("-1Gi")
	default:
		requests[memory] = resource.MustParse("0")
	}
}

const (
	missingCounterSet = "counter-set-missing"
	memoryCounter     = "memory"
	slotCounter       = "slots"
)

// counterSets draws the shared counters of the pool: none, one set or two.
func (p *poolDraw) counterSets() []resourceapi.CounterSet {
	if !p.mostly(counterTheme, groupTheme) || !p.Features.PartitionableDevices && !p.oneIn2To(3) {
		return nil
	}
	names := []string{"counter-set-1", "counter-set-2"}
	var result []resourceapi.CounterSet
	for _, name := range names[:pick(p.generator, 1, 2, 2)] {
		counters := map[string]resourceapi.Counter{memoryCounter: counter(pick(p.generator, "8Gi", "12Gi", "4Gi", "6Gi"))}
		if p.maybe() {
			counters[slotCounter] = counter(pick(p.generator, "3", "4"))
		}
		result = append(result, resourceapi.CounterSet{Name: name, Counters: counters})
	}
	return result
}

func counter(value string) resourceapi.Counter {
	return resourceapi.Counter{Value: resource.MustParse(value)}
}

// counterSlices draws the slices with the counter sets, together or in separate slices, and without devices as the API demands.
// They are for the nodes of the pool or for others. A rare duplicate set makes the pool invalid.
func (p *poolDraw) counterSlices() []*resourceapi.ResourceSlice {
	if len(p.sets) == 0 {
		return nil
	}
	parts := [][]resourceapi.CounterSet{p.sets}
	if len(p.sets) > 1 && p.maybe() {
		parts = [][]resourceapi.CounterSet{p.sets[:1], p.sets[1:]}
	}
	var result []*resourceapi.ResourceSlice
	for _, part := range parts {
		slice := p.emptySlice(latestGeneration)
		slice.Spec.SharedCounters = part
		if p.oneIn2To(5) {
			slice.Spec.SharedCounters = append(part[:1:1], part...)
		}
		// A slice without devices can't select nodes per device.
		switch here := p.place(); {
		case p.oneIn2To(3):
			p.placeElsewhere().applyToSlice(slice)
		case here.perDevice != nil:
			p.placeHere().applyToSlice(slice)
		default:
			here.applyToSlice(slice)
		}
		result = append(result, slice)
	}
	return result
}

// consumption draws a device's consumption of its pool's counter sets.
func (p *poolDraw) consumption() []resourceapi.DeviceCounterConsumption {
	if p.oneIn2To(10) {
		return []resourceapi.DeviceCounterConsumption{{
			CounterSet: missingCounterSet,
			Counters:   map[string]resourceapi.Counter{memoryCounter: counter("1Gi")},
		}}
	}
	if len(p.sets) == 0 || p.oneIn2To(3) {
		return nil
	}
	from := p.sets[:1]
	switch p.fairly(2) {
	case 2:
		from = p.sets
	case 3:
		from = p.sets[len(p.sets)-1:]
	}
	var result []resourceapi.DeviceCounterConsumption
	for _, set := range from {
		consumption := resourceapi.DeviceCounterConsumption{
			CounterSet:          set.Name,
			Counters:            map[string]resourceapi.Counter{memoryCounter: counter(pick(p.generator, "2Gi", "1Gi", "3Gi", "4Gi"))},
			CompatibilityGroups: p.compatibilityGroups(),
		}
		if _, found := set.Counters[slotCounter]; found && !p.sometimes() {
			consumption.Counters[slotCounter] = counter(pick(p.generator, "1", "2", "0"))
		}
		if p.oneIn2To(9) {
			consumption.Counters["missing"] = counter("1")
		}
		result = append(result, consumption)
	}
	return result
}

// compatibilityGroups draws the groups of a device for one counter set. If the feature is off the slice is ignored.
func (p *poolDraw) compatibilityGroups() []string {
	if p.Simple || !p.mostly(groupTheme) || !p.Features.CompatibilityGroups && !p.maybe() {
		return nil
	}
	return pick(p.generator, []string{"group-a"}, []string{"group-a", "group-b"}, []string{"group-b"}, []string{"group-c"})
}

const (
	taintKey      = "example.com/maintenance"
	otherTaintKey = "example.com/dedicated"
)

// taints draws the taints of a device. Unknown effects have no meaning.
func (p *poolDraw) taints() []resourceapi.DeviceTaint {
	if !p.often(usabilityTheme) && !p.rarely() {
		return nil
	}
	var taints []resourceapi.DeviceTaint
	for range p.between(1, 2) {
		taints = append(taints, resourceapi.DeviceTaint{
			Key:   pick(p.generator, taintKey, otherTaintKey),
			Value: pick(p.generator, "", "value-1", "value-2"),
			Effect: pick(p.generator, resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute,
				resourceapi.DeviceTaintEffectNone, "Future"),
		})
	}
	return taints
}

// tolerations draws the tolerations of a request.
func (g *generator) tolerations() []resourceapi.DeviceToleration {
	if !g.sometimes() {
		return nil
	}
	var tolerations []resourceapi.DeviceToleration
	for range g.between(1, 2) {
		toleration := resourceapi.DeviceToleration{
			Key:      pick(g, taintKey, otherTaintKey, ""),
			Operator: resourceapi.DeviceTolerationOpExists,
			Effect:   pick(g, "", resourceapi.DeviceTaintEffectNoSchedule, resourceapi.DeviceTaintEffectNoExecute),
		}
		if toleration.Key != "" && g.maybe() {
			toleration.Operator = resourceapi.DeviceTolerationOpEqual
			toleration.Value = pick(g, "", "value-1")
		}
		tolerations = append(tolerations, toleration)
	}
	return tolerations
}

// isShared decides whether a device has shares. The driver may have changed the device's field since their allocation.
func (g *generator) isShared(device *resourceapi.Device) bool {
	return ptr.Deref(device.AllowMultipleAllocations, false) != g.oneIn2To(6)
}

// shares draws up to two shares of a device, with or without capacity.
func (g *generator) shares(d Device, device *resourceapi.Device) {
	for i := range pick(g, 0, 1, 2, 0) {
		share := Share{Device: d, ShareID: fmt.Sprintf("share-%s-%d", d.Device, i+1)}
		if !g.sometimes() {
			share.Consumed = make(map[resourceapi.QualifiedName]resource.Quantity)
			if _, found := device.Capacity[memory]; found || g.rarely() {
				share.Consumed[memory] = resource.MustParse(pick(g, "1Gi", "2Gi", "10Gi", "0"))
			}
			if _, found := device.Capacity[cores]; found {
				share.Consumed[cores] = resource.MustParse(pick(g, "1", "500m"))
			}
			if len(share.Consumed) == 0 {
				share.Consumed = nil
			}
		}
		g.Shares = append(g.Shares, share)
	}
}
