// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

// theme is what a case has much of. Everything else occurs too, but rarely: were
// everything frequent, hardly anything could be allocated, and were nothing
// frequent, features would not meet themselves.
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

// mostly is true in three of four draws in cases of the themes, in others rarely.
func (g *generator) mostly(themes ...theme) bool {
	if g.isAbout(themes...) {
		return !g.sometimes()
	}
	return g.rarely()
}

// often is true in half of the draws in cases of the themes, in others in one of
// 32.
func (g *generator) often(themes ...theme) bool {
	if g.isAbout(themes...) {
		return g.maybe()
	}
	return g.oneIn2To(5)
}
