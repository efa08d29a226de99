// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view tells what expressions see of the devices of a node: drivers, capacities, and the
// attributes that are read ([ReadSet]). Drivers publish serial numbers, UUIDs and addresses, so
// that no two devices of a cluster have the same attributes. No claim that asks for any four
// connected devices reads them. What is found out about a node is therefore kept for all nodes
// that have the same [View].
//
// A view is not modified. Two nodes with the same [Content] of their slices, one by one, have
// devices that no expression with that read set can tell apart.
package view

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/cel/device"
)

// ID tells views apart.
type ID fingerprint.Sum

// MaxReadSets is for how many read sets the view of a node is known.
const MaxReadSets = 16

// identified is the view of a node for some read set.
type identified struct {
	read ReadSet
	id   ID
}

// IDOf is the view of a node's devices for expressions with a read set. Those for the read sets that were needed last
// are known, the newest last. What others look for at the same time may be forgotten.
func IDOf(of *inventory.Inventory, read ReadSet) ID {
	known, _ := of.Views.Load().([]identified)
	for i := range known {
		if known[i].read == read {
			return known[i].id
		}
	}
	all := read.append(nil)
	for _, p := range of.Pools {
		for _, slice := range p.Slices {
			content := Content(slice, read)
			all = append(all, content[:]...)
		}
	}
	id := ID(fingerprint.Of(all))
	of.Views.Store(append(slices.Clone(known[max(0, len(known)-MaxReadSets+1):]), identified{read, id}))
	return id
}

// View is the devices of a node as expressions with some read set see them, in the order of
// the candidates, without the names of devices, pools and nodes.
type View struct {
	ID ID
	// Values are the devices of the first such node, one value each, because identity is
	// equality. Attributes beyond the read set may have other values on other nodes.
	Values []*device.Device
	bytes  int
}

// New is the view of a node's devices.
func New(id ID, of *inventory.Inventory) *View {
	v := &View{ID: id, Values: make([]*device.Device, len(of.Candidates))}
	for i, candidate := range of.Candidates {
		v.Values[i] = device.New(candidate.Pool.Driver, candidate.Device)
		v.bytes += sizeOfDevice(candidate.Device)
	}
	return v
}

// Bytes is about what the view takes.
func (v *View) Bytes() int { return v.bytes }

// What a device takes once an expression has looked at it: so much by itself, and for each
// attribute and capacity a place in maps by domain and name and a converted value.
const (
	deviceBytes    = 700
	attributeBytes = 130
	elementBytes   = 24
)

func sizeOfDevice(d *resourceapi.Device) int {
	bytes := deviceBytes + attributeBytes*(len(d.Attributes)+len(d.Capacity))
	for _, a := range d.Attributes {
		bytes += elementBytes * (len(a.IntValues) + len(a.BoolValues) + len(a.StringValues) + len(a.VersionValues))
	}
	return bytes
}

// ReadSet is the attributes of devices that something reads, besides the drivers, the
// capacities and the names of attributes. Read sets with the same attributes are equal.
type ReadSet struct {
	// names are the fully qualified names in ascending order, each with end after it.
	names string
	// all: any attribute may be read. There are no names then.
	all bool
}

// end is after each name in a text of several: no name has it in it.
const end = "\x00"

// AnyAttribute is read where nobody can tell which.
var AnyAttribute = ReadSet{all: true}

// ReadAttribute reads one attribute.
func ReadAttribute(name resourceapi.FullyQualifiedName) ReadSet {
	return ReadSet{names: string(name) + end}
}

// NewReadSet is what an expression reads.
func NewReadSet(read device.ReadSet) ReadSet {
	if read.All {
		return AnyAttribute
	}
	names := make([]string, 0, len(read.Attributes))
	for name := range read.Attributes {
		names = append(names, name.Domain+"/"+name.ID+end)
	}
	slices.Sort(names)
	return ReadSet{names: strings.Join(names, "")}
}

// With is what either reads.
func (r ReadSet) With(other ReadSet) ReadSet {
	switch {
	case r.all || other.all:
		return AnyAttribute
	case other.names == "" || r.names == other.names:
		return r
	case r.names == "":
		return other
	}
	names := slices.Concat(slices.Collect(strings.SplitAfterSeq(r.names, end)), slices.Collect(strings.SplitAfterSeq(other.names, end)))
	slices.Sort(names)
	return ReadSet{names: strings.Join(slices.Compact(names), "")}
}

// Reader tells of the attributes of a driver's devices whether they are read, by the names
// that the devices have for them.
func (r ReadSet) Reader(driver string) func(resourceapi.QualifiedName) bool {
	if r.all {
		return func(resourceapi.QualifiedName) bool { return true }
	}
	names := sets.New[resourceapi.QualifiedName]()
	for name := range strings.SplitSeq(r.names, end) {
		names.Insert(resourceapi.QualifiedName(name))
		if id, ok := strings.CutPrefix(name, driver+"/"); ok {
			names.Insert(resourceapi.QualifiedName(id))
		}
	}
	return names.Has
}

// Fingerprint is the same for those that are equal.
func (r ReadSet) Fingerprint() fingerprint.Sum { return fingerprint.Of(r.append(nil)) }

func (r ReadSet) append(to []byte) []byte {
	return fingerprint.AppendPart(fingerprint.AppendBool(to, &r.all), r.names)
}

// IsAny reports whether any attribute may be read.
func (r ReadSet) IsAny() bool { return r.all }

// Bytes is about what it takes besides itself.
func (r ReadSet) Bytes() int { return len(r.names) }
