// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"
)

// A generator is the state while one case is drawn.
type generator struct {
	*rapid.T
	Profile
	*Case

	theme      theme
	sliceNames sets.Set[string]
	// devices counts the devices of the latest generations.
	devices int
	// crowded is set if there are many more devices than claims may want.
	crowded bool
	// requests and wanted count the requests and wanted devices of the claims so far.
	requests, wanted int
	// sets is the number of ways to choose devices for the claims so far.
	sets float64
	// definitions counts the CEL constraints defined so far.
	definitions int
}

const (
	gpuDriver = "gpu.example.com"
	nicDriver = "nic.example.com"
	// sharedDomain is the domain of attributes that several drivers publish.
	sharedDomain = "example.com"
)

// drivers have pools with the same names.
var (
	drivers   = []string{gpuDriver, nicDriver}
	poolNames = []string{"pool-a", "pool-b"}
)

// driver draws a driver, preferring drivers with devices.
func (g *generator) driver() string {
	if g.rarely() || len(g.Slices) == 0 {
		return nicDriver
	}
	return pick(g, g.Slices...).Spec.Driver
}

// A Profile determines the kinds of cases.
type Profile struct {
	// Faults allows input that makes allocators return an error: missing classes, selectors that fail or don't compile, needed
	// features that are off, amounts that can't be represented, values of future versions. Without Faults, such input never occurs.
	Faults bool
	// FailingSelectors makes selectors common that fail at run time on some devices.
	FailingSelectors bool
	// Alpha allows features that only upstream's experimental variant supports.
	Alpha bool
	// Simple omits features that the brute force search does not support: derived attributes, compatibility groups and request
	// policies.
	Simple bool
	// CELConstraints adds references to CEL device constraints and their definitions.
	CELConstraints bool
	// FailingExpression gives each case exactly one CEL constraint, which fails at run time for some sets.
	FailingExpression bool
	// Scarce makes all cases want about as many devices as exist.
	Scarce bool

	// MaxDevices limits the devices of the latest generation of all pools. It excludes crowds: rare slices with many devices. Claims
	// want few devices of a crowd.
	MaxDevices int
	// MaxRequests limits the requests of all claims of a case.
	MaxRequests int
	// MaxWanted limits the devices wanted by all requests with an exact count, counting the largest alternative. It ignores absurd
	// counts.
	MaxWanted int
	// MaxSets limits the ways to choose devices for all requests if nothing were in use and everything matched.
	MaxSets float64
}

// The limits keep an exhaustive search short: in the first profiles for a search that prunes by attribute constraints, in the
// others for one that never prunes.
var (
	// Beta allows everything that upstream's incubating variant supports.
	Beta = Profile{Faults: true, MaxDevices: 10, MaxRequests: 5, MaxWanted: 7, MaxSets: 20_000}
	// Alpha allows everything that upstream's experimental variant supports.
	Alpha = Profile{Faults: true, Alpha: true, MaxDevices: 10, MaxRequests: 5, MaxWanted: 7, MaxSets: 20_000}
	// Hopeless has too few devices in most cases, and selectors that fail on some devices.
	Hopeless = Profile{Faults: true, Alpha: true, FailingSelectors: true, Scarce: true, MaxDevices: 9, MaxRequests: 4, MaxWanted: 11, MaxSets: 100_000}
	// Sound omits everything that leads to an error.
	Sound = Profile{Alpha: true, Simple: true, MaxDevices: 8, MaxRequests: 4, MaxWanted: 6, MaxSets: 4_000}
	// CEL is Sound with CEL constraints.
	CEL = Profile{Alpha: true, Simple: true, CELConstraints: true, MaxDevices: 8, MaxRequests: 4, MaxWanted: 6, MaxSets: 4_000}
	// FailingCEL has CEL constraints whose expressions fail at run time.
	FailingCEL = Profile{Alpha: true, Simple: true, CELConstraints: true, FailingExpression: true,
		MaxDevices: 6, MaxRequests: 3, MaxWanted: 4, MaxSets: 1_000}
	// HopelessCEL is FailingCEL with too few devices for most cases.
	HopelessCEL = Profile{Alpha: true, Simple: true, CELConstraints: true, FailingExpression: true, Scarce: true,
		MaxDevices: 6, MaxRequests: 4, MaxWanted: 7, MaxSets: 4_000}
)

// features draws the enabled features: most of them. A feature of the case's theme that allocators can ignore is on in half of
// the cases.
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

// A theme is a feature that occurs often in a case. Everything else occurs rarely. If everything were frequent, hardly any claim
// could be allocated. If nothing were frequent, features would never interact.
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

// mostly is true in three of four draws if the case has one of the themes, and rarely otherwise.
func (g *generator) mostly(themes ...theme) bool {
	if g.isAbout(themes...) {
		return !g.sometimes()
	}
	return g.rarely()
}

// often is true in half of the draws if the case has one of the themes, and otherwise in one of 32 draws.
func (g *generator) often(themes ...theme) bool {
	if g.isAbout(themes...) {
		return g.maybe()
	}
	return g.oneIn2To(5)
}

// rapid's generators of numbers prefer small ones, so odds are built from fair coins. All of them shrink to "no".

// maybe is true in one of two draws.
func (g *generator) maybe() bool { return rapid.Bool().Draw(g.T, "") }

// oneIn2To is true in one of 2^bits draws.
func (g *generator) oneIn2To(bits int) bool {
	for range bits {
		if !g.maybe() {
			return false
		}
	}
	return true
}

// fairly draws a number below 2^bits with uniform probability.
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

// sometimes is true in one of 4 draws.
func (g *generator) sometimes() bool { return g.oneIn2To(2) }

// rarely is true in one of 16 draws.
func (g *generator) rarely() bool { return g.oneIn2To(4) }

// fault is true in one of 256 draws, and only if the profile allows faults.
func (g *generator) fault() bool { return g.Faults && g.oneIn2To(8) }

// between draws a number from low to high, inclusive.
func (g *generator) between(low, high int) int {
	return rapid.IntRange(low, max(low, high)).Draw(g.T, "")
}

// pick draws one of the items. The first items are slightly more likely, and shrinking ends with the first.
func pick[T any](g *generator, items ...T) T {
	return rapid.SampledFrom(items).Draw(g.T, "")
}

// some draws a subset of the items in their order. It is not empty unless there are no items.
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
