// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/cel/device"
)

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
	if r.all {
		return fingerprint.AppendPart(to, end)
	}
	return fingerprint.AppendPart(to, r.names)
}

// IsAny tells whether any attribute may be read.
func (r ReadSet) IsAny() bool { return r.all }

// Bytes is about what it takes besides itself.
func (r ReadSet) Bytes() int { return len(r.names) }
