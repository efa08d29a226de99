// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bound

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
	pairs  []entry
}

// column has a leaf of one variable for all devices.
type column struct {
	entries []entry
	// ints are the devices for which it is a number.
	ints bitset.Set
	// groups has the devices by value. elements by each value of a list, if the leaf is one for some device.
	groups       groups
	elements     *groups
	misbehaviour misbehaviour
}

// size is what the column takes.
func (c *column) size() int {
	sets := 1 + len(c.groups.members) + 1 + len(c.misbehaviour)
	if c.elements != nil {
		sets += len(c.elements.members) + 1
	}
	bytes := int(unsafe.Sizeof(*c)) + len(c.entries)*int(unsafe.Sizeof(entry{})) + sets*setSize(len(c.entries))
	for i := range c.entries {
		bytes += c.entries[i].textSize()
	}
	return bytes
}

// groups has the devices by the value that a leaf is for them, or by each of several that it has in a list.
type groups struct {
	// known are the devices of which the values are known, members those of each value.
	known   bitset.Set
	members []bitset.Set
	// sorted: all values are of one type that has an order, and members is in it.
	sorted bool
}

// newGroups looks at the values that own has of an entry, nil if they are not known. With more than most different values none
// counts as known.
func newGroups(entries []entry, own func(*entry) []any, most int) groups {
	g := groups{known: bitset.New(len(entries)), sorted: true}
	places := make(map[any]int)
	var values []any
	for i := range entries {
		of := own(&entries[i])
		if of == nil {
			continue
		}
		g.known.Add(i)
		for _, value := range of {
			place, seen := places[value]
			if !seen {
				if len(values) == most {
					return groups{known: bitset.New(len(entries))}
				}
				place = len(values)
				places[value] = place
				values, g.members = append(values, value), append(g.members, bitset.New(len(entries)))
				g.sorted = g.sorted && key.IsOrdered(value) && reflect.TypeOf(value) == reflect.TypeOf(values[0])
			}
			g.members[place].Add(i)
		}
	}
	if g.sorted {
		slices.SortFunc(values, key.Compare)
		members := slices.Clone(g.members)
		for place, value := range values {
			g.members[place] = members[places[value]]
		}
	}
	return g
}

// wholeValue is the value of an entry, be it a list.
func wholeValue(e *entry) []any {
	if e.key == nil {
		return nil
	}
	return []any{e.key}
}

// eachValue are the values in a list, or the value.
func eachValue(e *entry) []any {
	if e.elements != nil {
		return *e.elements
	}
	return wholeValue(e)
}

// setSize is what a set of devices takes in a list of sets.
func setSize(devices int) int { return int(unsafe.Sizeof(bitset.Set{})) + 8*bitset.Words(devices) }

// misbehaviour has, for each way to misbehave, the devices for which a leaf does.
type misbehaviour [misbehaviours]bitset.Set

// newMisbehaviour looks at the entries of a leaf: one for each device, or one for all.
func newMisbehaviour(entries []entry, devices int) misbehaviour {
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
