// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package propagate

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/celset/celset/cel/device/bitset"
	"github.com/celset/celset/cel/device/bound/key"
)

// leafTable has what CEL says: all entries of a leaf of one variable or none, which
// are published together, or those of a leaf of two as far as they were asked for.
type leafTable struct {
	mutex  sync.Mutex
	column atomic.Pointer[column]
	pairs  []Entry
}

// column has a leaf of one variable for all devices.
type column struct {
	Entries []Entry
	// Ints are the devices for which it is a number.
	Ints bitset.Set
	// Groups has the devices by value. elements by each value of a list, if the leaf is one for some device.
	Groups       Groups
	Elements     *Groups
	Misbehaviour misbehaviour
}

// size is the memory of the column in bytes.
func (c *column) size() int {
	sets := 1 + len(c.Groups.Members) + 1 + len(c.Misbehaviour)
	if c.Elements != nil {
		sets += len(c.Elements.Members) + 1
	}
	bytes := int(unsafe.Sizeof(*c)) + len(c.Entries)*int(unsafe.Sizeof(Entry{})) + sets*SetBytes(len(c.Entries))
	for i := range c.Entries {
		bytes += c.Entries[i].textSize()
	}
	return bytes
}

// Groups has the devices by the value that a leaf is for them, or by each of several that it has in a list.
type Groups struct {
	// Known are the devices of which the values are known, members those of each value.
	Known   bitset.Set
	Members []bitset.Set
	// Sorted: all values are of one type that has an order, and members is in it.
	Sorted bool
}

// newGroups looks at the values that own has of an entry, nil if they are not known. With more than most different values none
// counts as known.
func newGroups(entries []Entry, own func(*Entry) []any, most int) Groups {
	g := Groups{Known: bitset.New(len(entries)), Sorted: true}
	places := make(map[any]int)
	var values []any
	for i := range entries {
		of := own(&entries[i])
		if of == nil {
			continue
		}
		g.Known.Add(i)
		for _, value := range of {
			place, seen := places[value]
			if !seen {
				if len(values) == most {
					return Groups{Known: bitset.New(len(entries))}
				}
				place = len(values)
				places[value] = place
				values, g.Members = append(values, value), append(g.Members, bitset.New(len(entries)))
				g.Sorted = g.Sorted && key.IsOrdered(value) && reflect.TypeOf(value) == reflect.TypeOf(values[0])
			}
			g.Members[place].Add(i)
		}
	}
	if g.Sorted {
		slices.SortFunc(values, key.Compare)
		members := slices.Clone(g.Members)
		for place, value := range values {
			g.Members[place] = members[places[value]]
		}
	}
	return g
}

// wholeValue is the value of an entry, be it a list.
func wholeValue(e *Entry) []any {
	if e.Key == nil {
		return nil
	}
	return []any{e.Key}
}

// eachValue are the values in a list, or the value.
func eachValue(e *Entry) []any {
	if e.Elements != nil {
		return *e.Elements
	}
	return wholeValue(e)
}

// SetBytes is the memory of a set of devices in a list of sets.
func SetBytes(devices int) int { return int(unsafe.Sizeof(bitset.Set{})) + 8*bitset.Words(devices) }

// misbehaviour has, for each way to misbehave, the devices for which a leaf does.
type misbehaviour [misbehaviours]bitset.Set

// newMisbehaviour looks at the entries of a leaf: one for each device, or one for all.
func newMisbehaviour(entries []Entry, devices int) misbehaviour {
	var result misbehaviour
	for how := range misbehaviours {
		result[how] = bitset.New(devices)
		for i := range devices {
			if entries[min(i, len(entries)-1)].misbehaves(how) {
				result[how].Add(i)
			}
		}
	}
	return result
}
