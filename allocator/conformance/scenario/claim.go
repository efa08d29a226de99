// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// claims draws one to three claims, and rarely no claim.
func (g *generator) claims() {
	if g.oneIn2To(7) {
		return
	}
	for i := range pick(g, 1, 1, 1, 2, 1, 1, 2, 3) {
		g.Claims = append(g.Claims, g.claim(i))
	}
}

func (g *generator) claim(index int) *resourceapi.ResourceClaim {
	name := fmt.Sprintf("claim-%d", index+1)
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	devices := &claim.Spec.Devices
	for i := range pick(g, 1, 1, 2, 1, 1, 2, 1, 3, 4) {
		if g.requests >= g.MaxRequests {
			break
		}
		g.addRequest(devices, fmt.Sprintf("request-%d", i+1))
	}
	devices.Constraints = g.attributeConstraints(devices.Requests)
	devices.Config = g.claimConfiguration(devices.Requests)
	if g.CELConstraints {
		g.celConstraints(devices)
	}
	return claim
}

// addRequest adds a request unless an exhaustive search would take too long. If devices are scarce, requests are often equal.
func (g *generator) addRequest(devices *resourceapi.DeviceClaim, name string) {
	request := g.request(name)
	if last := len(devices.Requests) - 1; last >= 0 && g.often(scarceTheme) {
		request = *devices.Requests[last].DeepCopy()
		request.Name = name
	}
	if ways := g.setsFor(&request); g.sets*ways <= g.MaxSets {
		g.sets *= ways
		g.requests++
		devices.Requests = append(devices.Requests, request)
	}
}

// classes draws one to three classes. The first class has no selectors.
func (g *generator) classes() {
	for i := range g.between(1, 3) {
		class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", i+1)}}
		if i > 0 && g.maybe() {
			class.Spec.Selectors = g.selectors()
		}
		for range pick(g, 0, 0, 1, 2) {
			class.Spec.Config = append(class.Spec.Config,
				resourceapi.DeviceClassConfiguration{DeviceConfiguration: g.configuration()})
		}
		g.Classes = append(g.Classes, class)
	}
}

func (g *generator) className() string {
	switch {
	case g.fault():
		return "class-missing"
	case g.fault():
		return ""
	default:
		return pick(g, g.Classes...).Name
	}
}

// configuration draws opaque parameters for a driver. Allocators ignore them.
func (g *generator) configuration() resourceapi.DeviceConfiguration {
	return opaque(pick(g, drivers...), fmt.Sprintf(`{"value":%d}`, g.between(0, 9)))
}

func opaque(driver, parameters string) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     driver,
		Parameters: runtime.RawExtension{Raw: []byte(parameters)},
	}}
}

// claimConfiguration draws configurations for all requests of a claim, for some of them, or for a request that does not exist.
func (g *generator) claimConfiguration(requests []resourceapi.DeviceRequest) []resourceapi.DeviceClaimConfiguration {
	var config []resourceapi.DeviceClaimConfiguration
	for range pick(g, 0, 0, 1, 2) {
		c := resourceapi.DeviceClaimConfiguration{DeviceConfiguration: g.configuration()}
		switch {
		case g.rarely():
			c.Requests = []string{"request-missing"}
		case g.maybe():
			c.Requests = some(g, g.references(requests))
		}
		config = append(config, c)
	}
	return config
}

// request draws a request, with or without alternatives.
func (g *generator) request(name string) resourceapi.DeviceRequest {
	if g.hasAlternatives() {
		return resourceapi.DeviceRequest{Name: name, FirstAvailable: g.alternatives()}
	}
	exactly := g.exactly()
	g.amount(exactly)
	exactly.AdminAccess = g.adminAccess()
	g.addFault(exactly)
	return resourceapi.DeviceRequest{Name: name, Exactly: exactly}
}

// exactly draws the fields that requests and alternatives have in common, without the number of devices.
func (g *generator) exactly() *resourceapi.ExactDeviceRequest {
	return &resourceapi.ExactDeviceRequest{
		DeviceClassName:   g.className(),
		Selectors:         g.selectors(),
		AllocationMode:    resourceapi.DeviceAllocationModeExactCount,
		Tolerations:       g.tolerations(),
		Capacity:          g.capacityRequest(),
		DerivedAttributes: g.derivedAttributes(),
	}
}

// amount draws the allocation mode and the number of devices.
func (g *generator) amount(exactly *resourceapi.ExactDeviceRequest) {
	switch {
	case g.rarely():
		exactly.AllocationMode = resourceapi.DeviceAllocationModeAll
	case g.fault():
		exactly.Count = g.tooMany()
	default:
		exactly.Count = g.count()
	}
}

// count draws a number of devices for the allocation mode ExactCount.
func (g *generator) count() int64 {
	count := pick(g, 1, 1, 2, 1, 1, 2, 1, 3, 1, 2, 1, 4)
	switch {
	case g.Scarce && g.sometimes():
		count = max(1, g.devices-1+g.between(0, 2))
	case g.isAbout(scarceTheme):
		count = pick(g, 1, 2, 1, 3, 4, 5, 6)
	case g.isAbout(listTheme):
		count = pick(g, 2, 1, 2, 3)
	}
	count = min(count, g.MaxWanted-g.wanted)
	if g.oneIn2To(6) {
		count = 0
	}
	g.wanted += count
	return int64(count)
}

// tooMany draws a number of devices that exceeds the limit of a claim, either alone or together with a few more devices.
func (g *generator) tooMany() int64 {
	if g.crowded {
		// With more than 32 devices on the node, 31 or 32 would not be too many and the search would take long.
		return pick[int64](g, 33, 1<<62)
	}
	return pick[int64](g, 33, 32, 31, 1<<62)
}

// adminAccess draws the field adminAccess. If the feature is off, the field is invalid, so it is set only if Faults is on.
func (g *generator) adminAccess() *bool {
	switch {
	case !g.Features.AdminAccess && !(g.Faults && g.oneIn2To(6)):
		return nil
	case g.oneIn2To(3):
		return ptr.To(true)
	case g.rarely():
		return ptr.To(false)
	default:
		return nil
	}
}

// addFault adds values that only a future version of the API defines.
func (g *generator) addFault(exactly *resourceapi.ExactDeviceRequest) {
	switch {
	case g.fault():
		exactly.AllocationMode = "Most"
	case g.fault():
		exactly.Selectors = append(exactly.Selectors, resourceapi.DeviceSelector{})
	}
}

// setsFor returns the maximum number of ways to choose devices for a request.
func (g *generator) setsFor(request *resourceapi.DeviceRequest) float64 {
	devices := g.devices
	if g.crowded {
		devices += crowdSize
	}
	if request.Exactly != nil {
		return binomial(devices, request.Exactly.AllocationMode, request.Exactly.Count)
	}
	total := 0.0
	for _, alternative := range request.FirstAvailable {
		total += binomial(devices, alternative.AllocationMode, alternative.Count)
	}
	return total
}

// binomial returns an estimate of the number of sets that a search tries, including partial sets. So a request for more than
// half of the devices does not count as cheaper than a request for half of them.
func binomial(devices int, mode resourceapi.DeviceAllocationMode, count int64) float64 {
	if mode != resourceapi.DeviceAllocationModeExactCount || count > resourceapi.AllocationResultsMaxSize {
		return 1
	}
	result := 1.0
	for i := range min(int(count), devices/2) {
		result *= float64(devices-i) / float64(i+1)
	}
	return result
}

// hasAlternatives draws whether a request is a prioritized list. If the feature is off, a prioritized list is an error.
func (g *generator) hasAlternatives() bool {
	if !g.Features.PrioritizedList {
		return g.Faults && g.isAbout(alternativesTheme) && g.oneIn2To(3) || g.fault()
	}
	return g.mostly(alternativesTheme)
}

// alternatives draws one to three alternatives. An alternative may want more devices than a claim can get. The last alternative
// wants so many only as a fault.
func (g *generator) alternatives() []resourceapi.DeviceSubRequest {
	count := pick(g, 2, 1, 3, 2)
	before, most := g.wanted, g.wanted
	var result []resourceapi.DeviceSubRequest
	for i := range count {
		g.wanted = before
		exactly := g.exactly()
		if i+1 < count && g.oneIn2To(2) {
			exactly.Count = g.tooMany()
		} else {
			g.amount(exactly)
		}
		if g.crowded && i+1 < count && g.maybe() {
			exactly.AllocationMode, exactly.Count = resourceapi.DeviceAllocationModeAll, 0
		}
		most = max(most, g.wanted)
		result = append(result, resourceapi.DeviceSubRequest{
			Name: fmt.Sprintf("alternative-%d", i+1), DeviceClassName: exactly.DeviceClassName, Selectors: exactly.Selectors,
			AllocationMode: exactly.AllocationMode, Count: exactly.Count, Tolerations: exactly.Tolerations,
			Capacity: exactly.Capacity, DerivedAttributes: exactly.DerivedAttributes,
		})
	}
	g.wanted = most
	return result
}

// references draws the names in a constraint or configuration: of requests, of prioritized lists, or of alternatives.
func (g *generator) references(requests []resourceapi.DeviceRequest) []string {
	var names []string
	for i := range requests {
		if alternatives := alternativeNames(&requests[i]); len(alternatives) > 0 && g.maybe() {
			names = append(names, some(g, alternatives)...)
		} else {
			names = append(names, requests[i].Name)
		}
	}
	return names
}

func alternativeNames(request *resourceapi.DeviceRequest) []string {
	var names []string
	for _, alternative := range request.FirstAvailable {
		names = append(names, request.Name+"/"+alternative.Name)
	}
	return names
}

// asked describes the devices that a request or an alternative asks for.
type asked struct {
	class string
	all   bool
	count int64
}

// byName returns the alternatives that a name refers to: a request, all alternatives of a request, or one alternative.
func byName(requests []resourceapi.DeviceRequest, name string) (result []asked) {
	for i := range requests {
		request := &requests[i]
		if e := request.Exactly; e != nil && request.Name == name {
			result = append(result, asked{e.DeviceClassName, e.AllocationMode == resourceapi.DeviceAllocationModeAll, e.Count})
		}
		for j, full := range alternativeNames(request) {
			if a := request.FirstAvailable[j]; request.Name == name || full == name {
				result = append(result, asked{a.DeviceClassName, a.AllocationMode == resourceapi.DeviceAllocationModeAll, a.Count})
			}
		}
	}
	return result
}

// selectors draws the selectors of a class or a request.
func (g *generator) selectors() []resourceapi.DeviceSelector {
	var selectors []resourceapi.DeviceSelector
	count := pick(g, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 2)
	if g.FailingSelectors {
		count = pick(g, 0, 1)
	}
	for range count {
		selectors = append(selectors, resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: g.selector()}})
	}
	return selectors
}

func (g *generator) selector() string {
	rule := "selector"
	switch {
	case g.FailingSelectors && g.maybe():
		rule = "failingSelector"
	case g.fault():
		rule = "faultySelector"
	}
	return grammar().Write(g.T, rule, map[string][]string{"driver": {g.driver()}})
}

// attributeConstraints draws matchAttribute and distinctAttribute constraints.
func (g *generator) attributeConstraints(requests []resourceapi.DeviceRequest) []resourceapi.DeviceConstraint {
	coverable := g.references(requests)
	if len(coverable) == 0 {
		return nil
	}
	count := pick(g, 0, 0, 0, 1, 0, 1, 0, 2)
	if g.isAbout(listTheme, derivedTheme, scarceTheme) {
		count = pick(g, 1, 1, 0, 2)
	}
	var constraints []resourceapi.DeviceConstraint
	for range count {
		if g.fault() {
			constraints = append(constraints, resourceapi.DeviceConstraint{})
			continue
		}
		constraint := g.attributeConstraint()
		if g.maybe() {
			constraint.Requests = some(g, coverable)
		}
		constraints = append(constraints, constraint)
	}
	return constraints
}

func (g *generator) attributeConstraint() resourceapi.DeviceConstraint {
	if g.maybe() {
		return resourceapi.DeviceConstraint{DistinctAttribute: g.attributeOf(attributeIndex, attributeCol, attributeGroup, attributeHealthy, attributeModel)}
	}
	return resourceapi.DeviceConstraint{MatchAttribute: g.attributeOf(attributeHealthy, attributeRow, attributeModel, attributeGroup, attributeVersion)}
}

// attributeOf draws the name of an attribute: in a driver's domain, in the shared domain, or rarely one that no device has.
func (g *generator) attributeOf(ids ...string) *resourceapi.FullyQualifiedName {
	name := g.driver() + "/" + pick(g, ids...)
	switch {
	case g.isAbout(derivedTheme) && !g.sometimes():
		name = derivedKind
	case g.isAbout(listTheme) && !g.sometimes():
		name = sharedDomain + "/" + attributeLinks
	case g.sometimes():
		name = sharedDomain + "/" + attributeRack
	case g.oneIn2To(6):
		name = gpuDriver + "/missing"
	case g.fault():
		// A name without a domain matches only attributes that are published without a domain.
		name = pick(g, ids...)
	}
	return ptr.To(resourceapi.FullyQualifiedName(name))
}

// isReference reports whether a constraint refers to a CEL device constraint.
func isReference(constraint resourceapi.DeviceConstraint) bool {
	return constraint.MatchAttribute != nil && strings.HasPrefix(string(*constraint.MatchAttribute), v1alpha1.AttributeDomain+"/")
}

const derivedKind = "derived.example.com/kind"

// derivedAttributes draws the derived attributes of a request. A derived attribute may have the name of a published attribute.
// If the feature is off, derived attributes are an error.
func (g *generator) derivedAttributes() []resourceapi.DeviceDerivedAttribute {
	if g.Simple {
		return nil
	}
	if !g.Features.DerivedAttributes {
		if !g.fault() && !(g.Faults && g.isAbout(derivedTheme) && g.oneIn2To(5)) {
			return nil
		}
	} else if !g.mostly(derivedTheme) {
		return nil
	}
	result := []resourceapi.DeviceDerivedAttribute{{Name: derivedKind, Expression: g.derivation()}}
	if g.sometimes() {
		result = append(result, resourceapi.DeviceDerivedAttribute{
			Name:       resourceapi.FullyQualifiedName(gpuDriver + "/" + pick(g, attributeGroup, attributeModel)),
			Expression: g.derivation(),
		})
	}
	return result
}

// derivation draws an expression for a derived attribute, of any type that an attribute can have.
func (g *generator) derivation() string {
	if g.Faults && g.oneIn2To(4) {
		return grammar().Write(g.T, "faultyDerivation", nil)
	}
	return grammar().Write(g.T, "derivation", nil)
}
