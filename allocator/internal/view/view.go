// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view represents the devices of a node as expressions read them: drivers, capacities, and the attributes in a
// [ReadSet]. Drivers publish serial numbers, UUIDs and addresses, so no two devices of a cluster have equal attributes. But a
// claim for any four connected devices reads none of these. So nodes with the same [View] share cached results.
//
// A view is never modified. If the slices of two nodes have the same [Content], one by one, no expression with that read set
// can distinguish the devices of the nodes.
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

// ID identifies a view. Nodes with the same ID share the view.
type ID fingerprint.Sum

// MaxReadSets limits the cached IDs of a node's views, one for each read set.
const MaxReadSets = 16

// identified is the ID of a node's view for one read set.
type identified struct {
	read ReadSet
	id   ID
}

// IDOf returns the ID of a node's view for a read set. It caches the IDs for the latest read sets, the newest last. A
// concurrent call may overwrite a cached ID, which is then computed again.
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

// View holds the devices of a node as expressions with a read set can read them, in the order of candidates. It contains no
// names of devices, pools and nodes.
type View struct {
	ID ID
	// Values holds one object for each device of the first node with this view. Expressions compare devices by identity, so
	// each device has exactly one object. Attributes outside the read set may have other values on other nodes.
	Values []*device.Device
	bytes  int
}

// New returns the view of a node's devices. id is the result of IDOf.
func New(id ID, of *inventory.Inventory) *View {
	v := &View{ID: id, Values: make([]*device.Device, len(of.Candidates))}
	for i, candidate := range of.Candidates {
		v.Values[i] = device.New(candidate.Pool.Driver, candidate.Device)
		v.bytes += sizeOfDevice(candidate.Device)
	}
	return v
}

// Bytes returns the approximate size of the view.
func (v *View) Bytes() int { return v.bytes }

// These are the approximate sizes in bytes of a device that an expression has read. An attribute or capacity includes its
// entries in maps by domain and name, and its converted value.
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

// ReadSet is the set of attributes whose values an expression reads. Every expression also counts as reading drivers,
// capacities and the names of attributes. Read sets with the same attributes are equal.
type ReadSet struct {
	// names holds the fully qualified names in ascending order. The byte end follows each name.
	names string
	// all is true if any attribute may be read. Then names is empty.
	all bool
}

// end terminates each name in ReadSet.names. No name contains this byte.
const end = "\x00"

// AnyAttribute is the read set of an expression whose attributes can't be determined.
var AnyAttribute = ReadSet{all: true}

// ReadAttribute returns the read set with one attribute.
func ReadAttribute(name resourceapi.FullyQualifiedName) ReadSet {
	return ReadSet{names: string(name) + end}
}

// NewReadSet converts the read set of an expression.
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

// With returns the union of two read sets.
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

// Reader returns a function that reports whether the read set contains an attribute of a driver's devices. The function gets
// the name that the device has for the attribute.
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

// Fingerprint returns the fingerprint of the read set. It is equal for equal read sets.
func (r ReadSet) Fingerprint() fingerprint.Sum { return fingerprint.Of(r.append(nil)) }

func (r ReadSet) append(to []byte) []byte {
	return fingerprint.AppendPart(fingerprint.AppendBool(to, &r.all), r.names)
}

// IsAny reports whether any attribute may be read.
func (r ReadSet) IsAny() bool { return r.all }

// Bytes returns the approximate size of the read set without the struct.
func (r ReadSet) Bytes() int { return len(r.names) }
