// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"fmt"
	"slices"
	"strings"

	"github.com/celset/celset/internal/topology"
)

// State says how a device is shown in a drawing.
type State int

const (
	// Free devices can be allocated.
	Free State = iota
	// Taken devices are allocated to another owner.
	Taken
	// Chosen devices are the subject of the drawing, such as the result of an allocation.
	Chosen
	// Unusable devices are free but can't be allocated.
	Unusable
	// Tainted devices are free, but only for claims that tolerate the taint.
	Tainted
)

// Mark is the state and the owner of a device in a drawing.
type Mark struct {
	State State
	// Owner is an optional short name of the owner of a taken device, such as a pod. It is ignored for other states.
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

// marking chooses the symbols of the devices in a drawing, and creates the legend.
type marking struct {
	marks map[string]Mark
	// owners has the owners with a letter of their own, in the order of their devices. When all letters are used, further
	// owners share the symbol of owners without a name.
	owners []string
}

// newMarking returns an error if a mark is for a device that the topology lacks, because the drawing would not show the mark.
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

// symbol returns the symbol of a device.
func (m marking) symbol(name string) rune { return m.marks[name].Symbol(m.owners) }

// Symbol returns the symbol of a device with this mark. The first 52 owners have a letter of their own.
func (m Mark) Symbol(owners []string) rune {
	switch m.State {
	case Chosen:
		return chosenSymbol
	case Taken:
		if i := slices.Index(owners, m.Owner); i >= 0 && i < len(ownerSymbols) {
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

// legend returns an explanation for each symbol in the drawing, with the number of devices.
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
