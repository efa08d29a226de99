// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celset/celset/internal/topology"
)

// State says whether a device is in use.
type State int

const (
	// Free devices can be allocated.
	Free State = iota
	// Taken devices are allocated to somebody else.
	Taken
	// Chosen devices are the subject of the drawing, for instance the result
	// of an allocation.
	Chosen
	// Unusable devices are neither taken nor can they be allocated.
	Unusable
	// Tainted devices are free for those who tolerate the taint.
	Tainted
)

// Mark is what a drawing shows about a device besides its name.
type Mark struct {
	State State
	// Owner is a short name of the owner of a taken device, for instance that
	// of a pod. It is optional, and unused in other states.
	Owner string
}

const (
	freeSymbol   = '.'
	chosenSymbol = '*'
	takenSymbol  = '#'
	unusable     = '-'
	tainted      = '!'
	ownerSymbols = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// marking gives each device of a drawing a symbol, and says what the symbols
// stand for.
type marking struct {
	marks map[string]Mark
	// owners get a letter each in the order in which their devices come. Those
	// beyond the last letter look like devices without a known owner.
	owners []string
}

// newMarking fails if a device is marked that the topology does not have, because
// the drawing would hide that it is allocated.
func newMarking(t topology.Topology, marks map[string]Mark) (marking, error) {
	known := make(map[string]bool, len(t.Devices))
	for _, d := range t.Devices {
		known[d.Name] = true
	}
	var unknown []string
	for name := range marks {
		if !known[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return marking{}, fmt.Errorf("%s: has no device %s: mark only devices of the topology",
			t, strings.Join(unknown, ", "))
	}
	return marking{marks: marks, owners: owners(t, marks)}, nil
}

func owners(t topology.Topology, marks map[string]Mark) []string {
	var owners []string
	for _, d := range t.Devices {
		mark := marks[d.Name]
		if mark.State != Taken || mark.Owner == "" || len(owners) == len(ownerSymbols) {
			continue
		}
		if !slices.Contains(owners, mark.Owner) {
			owners = append(owners, mark.Owner)
		}
	}
	return owners
}

func (m marking) chosen(name string) bool {
	return m.marks[name].State == Chosen
}

// symbol returns the character for the mark of a device.
func (m marking) symbol(name string) rune {
	mark := m.marks[name]
	switch mark.State {
	case Chosen:
		return chosenSymbol
	case Taken:
		if i := slices.Index(m.owners, mark.Owner); i >= 0 {
			return rune(ownerSymbols[i])
		}
		return takenSymbol
	case Unusable:
		return unusable
	case Tainted:
		return tainted
	default:
		return freeSymbol
	}
}

func (m marking) style(name string) style {
	switch m.marks[name].State {
	case Chosen:
		return chosenStyle
	case Taken:
		return takenStyle
	default:
		return plainStyle
	}
}

// linkStyle returns the style of a link between two devices.
func (m marking) linkStyle(edge topology.Edge) style {
	if m.chosen(edge.A) && m.chosen(edge.B) {
		return chosenStyle
	}
	return plainStyle
}

// A legendEntry explains one symbol.
type legendEntry struct {
	text  string
	style style
}

// legend explains the symbols in the drawing, with the number of devices.
func (m marking) legend(t topology.Topology) []legendEntry {
	counts := map[rune]int{}
	for _, d := range t.Devices {
		counts[m.symbol(d.Name)]++
	}
	var entries []legendEntry
	add := func(symbol rune, meaning string, style style) {
		if n := counts[symbol]; n > 0 {
			entries = append(entries, legendEntry{fmt.Sprintf("%c %s (%d)", symbol, meaning, n), style})
		}
	}
	add(freeSymbol, "free", plainStyle)
	add(chosenSymbol, "chosen", chosenStyle)
	for i, owner := range m.owners {
		add(rune(ownerSymbols[i]), "taken by "+owner, takenStyle)
	}
	add(takenSymbol, "taken", takenStyle)
	add(unusable, "not usable", plainStyle)
	add(tainted, "tainted", plainStyle)
	return entries
}
