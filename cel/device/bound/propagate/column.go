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

// A leafTable stores the values of one leaf, as computed by CEL. A leaf with at most one variable has a column, which is
// published when it is complete. A leaf with two variables has an entry for each pair, filled on demand.
type leafTable struct {
	mutex  sync.Mutex
	column atomic.Pointer[column]
	pairs  []Entry
}

// A column holds the values of a leaf with at most one variable for all devices.
type column struct {
	Entries []Entry
	// Ints has the devices with a value of type int.
	Ints bitset.Set
	// Groups groups the devices by value. Elements groups the devices by each element of their lists. It is nil if no value is
	// a list.
	Groups       Groups
	Elements     *Groups
	Misbehaviour misbehaviour
}

// size returns the approximate memory of the column in bytes.
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

// Groups holds sets of devices, one for each value of a leaf or each element of its lists.
type Groups struct {
	// Known has the devices with comparable values. Members has one set of devices for each different value.
	Known   bitset.Set
	Members []bitset.Set
	// Sorted means that all values have the same ordered type, and that Members is sorted by value.
	Sorted bool
}

// newGroups groups the entries by the keys that own returns for each entry. A device without keys is not in Known. If there are
// more than most different keys, Known is empty.
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

// wholeValue returns the key of the entry's value. A list counts as a single value.
func wholeValue(e *Entry) []any {
	if e.Key == nil {
		return nil
	}
	return []any{e.Key}
}

// eachValue returns the keys of the elements if the entry is a list, and otherwise the key of the value.
func eachValue(e *Entry) []any {
	if e.Elements != nil {
		return *e.Elements
	}
	return wholeValue(e)
}

// SetBytes returns the memory in bytes of one set of devices in a list of sets.
func SetBytes(devices int) int { return int(unsafe.Sizeof(bitset.Set{})) + 8*bitset.Words(devices) }

// misbehaviour maps each kind of misbehaviour (see Against) to the devices whose entries show it.
type misbehaviour [misbehaviours]bitset.Set

// newMisbehaviour checks the entries of a leaf. There is one entry for each device, or a single entry that holds for all
// devices.
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
