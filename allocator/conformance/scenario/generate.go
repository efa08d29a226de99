// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"
)

// A generator holds the state while a case is drawn.
type generator struct {
	*rapid.T
	Profile
	*Case

	theme      theme
	sliceNames sets.Set[string]
	// devices is the number of devices in the latest generations of all pools.
	devices int
	// crowded is true if one slice has far more devices than claims may want.
	crowded bool
	// requests is the number of requests drawn so far. wanted is the number of devices that they want.
	requests, wanted int
	// sets is the number of ways to choose devices for the claims drawn so far.
	sets float64
	// definitions is the number of CEL constraints defined so far.
	definitions int
}

const (
	gpuDriver = "gpu.example.com"
	nicDriver = "nic.example.com"
	// sharedDomain is the domain of attributes that several drivers publish.
	sharedDomain = "example.com"
)

// Both drivers use the same names for pools.
var (
	drivers   = []string{gpuDriver, nicDriver}
	poolNames = []string{"pool-a", "pool-b"}
)

// driver draws a driver, mostly one that has devices.
func (g *generator) driver() string {
	if g.rarely() || len(g.Slices) == 0 {
		return nicDriver
	}
	return pick(g, g.Slices...).Spec.Driver
}

// A Profile determines which features, faults and sizes the cases may have.
type Profile struct {
	// Faults permits input that makes allocators return an error: missing classes, selectors that fail or don't compile, required
	// features that are off, amounts that can't be represented, and values of future versions. Otherwise none occurs.
	Faults bool
	// FailingSelectors draws many selectors that fail at run time for some devices.
	FailingSelectors bool
	// Alpha permits features that only upstream's experimental variant supports.
	Alpha bool
	// Simple omits features that package bruteforce does not support: derived attributes, compatibility groups and request
	// policies.
	Simple bool
	// CELConstraints adds CEL device constraints and references to them.
	CELConstraints bool
	// FailingExpression gives each case exactly one CEL constraint, which fails at run time for some sets.
	FailingExpression bool
	// Scarce makes all claims of a case together want about as many devices as exist.
	Scarce bool

	// MaxDevices limits the devices in the latest generation of all pools. A rare slice with very many devices, a crowd, does
	// not count. Claims want few devices of a crowd.
	MaxDevices int
	// MaxRequests limits the number of requests of all claims in a case.
	MaxRequests int
	// MaxWanted limits the number of devices that all requests with an exact count want. A prioritized list counts as its
	// largest alternative. Counts that no node can satisfy are not limited.
	MaxWanted int
	// MaxSets limits the ways to choose devices for all requests, as if no device were in use and every device matched.
	MaxSets float64
}

// The limits keep an exhaustive search short. The first three profiles are for a search that prunes by attribute constraints.
// The others are for a search that never prunes.
var (
	// Beta permits everything that upstream's incubating variant supports.
	Beta = Profile{Faults: true, MaxDevices: 10, MaxRequests: 5, MaxWanted: 7, MaxSets: 20_000}
	// Alpha permits everything that upstream's experimental variant supports.
	Alpha = Profile{Faults: true, Alpha: true, MaxDevices: 10, MaxRequests: 5, MaxWanted: 7, MaxSets: 20_000}
	// Hopeless has too few devices in most cases, and selectors that fail for some devices.
	Hopeless = Profile{Faults: true, Alpha: true, FailingSelectors: true, Scarce: true, MaxDevices: 9, MaxRequests: 4, MaxWanted: 11, MaxSets: 100_000}
	// Sound permits no input that leads to an error.
	Sound = Profile{Alpha: true, Simple: true, MaxDevices: 8, MaxRequests: 4, MaxWanted: 6, MaxSets: 4_000}
	// CEL is Sound with CEL constraints.
	CEL = Profile{Alpha: true, Simple: true, CELConstraints: true, MaxDevices: 8, MaxRequests: 4, MaxWanted: 6, MaxSets: 4_000}
	// FailingCEL is like CEL, with expressions that fail at run time for some sets.
	FailingCEL = Profile{Alpha: true, Simple: true, CELConstraints: true, FailingExpression: true,
		MaxDevices: 6, MaxRequests: 3, MaxWanted: 4, MaxSets: 1_000}
	// HopelessCEL is like FailingCEL, with too few devices in most cases.
	HopelessCEL = Profile{Alpha: true, Simple: true, CELConstraints: true, FailingExpression: true, Scarce: true,
		MaxDevices: 6, MaxRequests: 4, MaxWanted: 7, MaxSets: 4_000}
)

// features draws the features that are on: most of them. A feature of the theme that can be ignored is on in half of the cases.
func (g *generator) features() {
	on := func(about ...theme) bool {
		if g.Faults && g.isAbout(about...) {
			return g.maybe()
		}
		return !g.sometimes()
	}
	g.Features = structured.Features{
		AdminAccess:             on(),
		ConsumableCapacity:      g.isAbout(fractionTheme) || on(),
		DeviceBindingAndStatus:  on(usabilityTheme),
		DeviceTaints:            on(usabilityTheme),
		FractionalCapacityRange: on(fractionTheme),
		PartitionableDevices:    g.isAbout(groupTheme) || on(),
		PrioritizedList:         on(),
	}
	if g.Alpha {
		g.Features.CompatibilityGroups = on()
		g.Features.DerivedAttributes = on()
		g.Features.ListTypeAttributes = on()
		g.Features.OptionalNodeOperations = on(usabilityTheme)
	}
}

// A theme is a feature that occurs often in a case, while all others occur rarely. If all features were frequent, hardly any
// claim could be allocated. If no feature were frequent, features would never interact.
type theme int

const (
	mixedTheme theme = iota
	alternativesTheme
	counterTheme
	groupTheme
	capacityTheme
	fractionTheme
	listTheme
	derivedTheme
	usabilityTheme
	scarceTheme
)

func (g *generator) drawTheme() theme {
	themes := []theme{mixedTheme, alternativesTheme, counterTheme, capacityTheme, listTheme, usabilityTheme, scarceTheme, usabilityTheme}
	if !g.Simple {
		themes = append(themes, fractionTheme, usabilityTheme, fractionTheme, groupTheme, derivedTheme, listTheme)
	}
	if g.Alpha && !g.Simple {
		themes = append(themes, groupTheme, listTheme, listTheme)
	}
	return themes[g.fairly(6)%len(themes)]
}

func (g *generator) isAbout(themes ...theme) bool {
	for _, t := range themes {
		if g.theme == t {
			return true
		}
	}
	return false
}

// mostly returns true in three of four draws if the case has one of the themes, and in one of 16 otherwise.
func (g *generator) mostly(themes ...theme) bool {
	if g.isAbout(themes...) {
		return !g.sometimes()
	}
	return g.rarely()
}

// often returns true in half of the draws if the case has one of the themes, and in one of 32 otherwise.
func (g *generator) often(themes ...theme) bool {
	if g.isAbout(themes...) {
		return g.maybe()
	}
	return g.oneIn2To(5)
}

// rapid's generators prefer small numbers, so the following functions combine fair coins. All of them shrink to false.

// maybe returns true in one of two draws.
func (g *generator) maybe() bool { return rapid.Bool().Draw(g.T, "") }

// oneIn2To returns true in one of 2^bits draws.
func (g *generator) oneIn2To(bits int) bool {
	for range bits {
		if !g.maybe() {
			return false
		}
	}
	return true
}

// fairly draws a number below 2^bits. All numbers have the same probability.
func (g *generator) fairly(bits int) int {
	result := 0
	for range bits {
		result *= 2
		if g.maybe() {
			result++
		}
	}
	return result
}

// sometimes returns true in one of 4 draws.
func (g *generator) sometimes() bool { return g.oneIn2To(2) }

// rarely returns true in one of 16 draws.
func (g *generator) rarely() bool { return g.oneIn2To(4) }

// fault returns true in one of 256 draws if the profile permits faults. Otherwise it returns false.
func (g *generator) fault() bool { return g.Faults && g.oneIn2To(8) }

// between draws a number from low to high, inclusive.
func (g *generator) between(low, high int) int {
	return rapid.IntRange(low, max(low, high)).Draw(g.T, "")
}

// pick draws one of the items. The first items are slightly more likely. Shrinking ends with the first item.
func pick[T any](g *generator, items ...T) T {
	return rapid.SampledFrom(items).Draw(g.T, "")
}

// some draws a subset of the items, in their order. The subset is empty only if there are no items.
func some[T any](g *generator, items []T) []T {
	var result []T
	for _, item := range items {
		if g.maybe() {
			result = append(result, item)
		}
	}
	if len(result) == 0 && len(items) > 0 {
		result = append(result, items[0])
	}
	return result
}
