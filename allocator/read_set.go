// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/celset/celset/cel/device"
)

// Drivers publish serial numbers, UUIDs and addresses, so that no two devices of a cluster
// have the same attributes. No claim that asks for any four connected devices reads them.
// What is found out about a node is therefore kept for all nodes that have the same in
// those attributes that the claims read ([deviceView]).

// readSet is the attributes of devices that something reads, besides the drivers, the
// capacities and the names of attributes. Read sets with the same attributes are equal.
type readSet struct {
	// names are the fully qualified names in ascending order, each with end after it.
	names string
	// all: any attribute may be read. There are no names then.
	all bool
}

// end is after each name in a text of several: no name has it in it.
const end = "\x00"

var anyAttribute = readSet{all: true}

func attributeNamed(name resourceapi.FullyQualifiedName) readSet {
	return readSet{names: string(name) + end}
}

// readBy is the read set of a CEL constraint. It is about the text and nothing else, as
// analyses are.
func readBy(d *definition) readSet {
	return expressionReadSets.Get(d.key, func() readSet { return newReadSet(d.expression.ReadSet()) })
}

func newReadSet(read device.ReadSet) readSet {
	if read.All {
		return anyAttribute
	}
	names := make([]string, 0, len(read.Attributes))
	for name := range read.Attributes {
		names = append(names, name.Domain+"/"+name.ID+end)
	}
	slices.Sort(names)
	return readSet{names: strings.Join(names, "")}
}

// with is what either reads.
func (f readSet) with(other readSet) readSet {
	switch {
	case f.all || other.all:
		return anyAttribute
	case other.names == "" || f.names == other.names:
		return f
	case f.names == "":
		return other
	}
	names := slices.Concat(slices.Collect(strings.SplitAfterSeq(f.names, end)), slices.Collect(strings.SplitAfterSeq(other.names, end)))
	slices.Sort(names)
	return readSet{names: strings.Join(slices.Compact(names), "")}
}

// reader tells of the attributes of a driver's devices whether they are read, by the names
// that the devices have for them.
func (f readSet) reader(driver string) func(resourceapi.QualifiedName) bool {
	if f.all {
		return func(resourceapi.QualifiedName) bool { return true }
	}
	names := sets.New[resourceapi.QualifiedName]()
	for name := range strings.SplitSeq(f.names, end) {
		names.Insert(resourceapi.QualifiedName(name))
		if id, ok := strings.CutPrefix(name, driver+"/"); ok {
			names.Insert(resourceapi.QualifiedName(id))
		}
	}
	return names.Has
}

// readByClaims is the read set of some claims.
type readByClaims struct {
	claims []*resourceapi.ResourceClaim
	readSet
}

// readSetOf is all that an allocation for the claims reads. The claims of a pod are the
// same objects for one node after the other.
func (a *Allocator) readSetOf(claims []*resourceapi.ResourceClaim) readSet {
	if last := a.lastRead.Load(); last != nil && slices.Equal(last.claims, claims) {
		return last.readSet
	}
	var read readSet
	for _, claim := range claims {
		read = read.with(a.readByClaim(claim))
	}
	a.lastRead.Store(&readByClaims{slices.Clone(claims), read})
	return read
}

func (a *Allocator) readByClaim(claim *resourceapi.ResourceClaim) readSet {
	read := a.readByConstraints(claim)
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if exactly := r.Exactly; exactly != nil {
			read = read.with(a.readByRequest(exactly.DeviceClassName, exactly.Selectors, exactly.DerivedAttributes))
		}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			read = read.with(a.readByRequest(sub.DeviceClassName, sub.Selectors, sub.DerivedAttributes))
		}
	}
	return read
}

func (a *Allocator) readByConstraints(claim *resourceapi.ResourceClaim) readSet {
	definitions, err := a.definitions.of(a, claim)
	if err != nil {
		return anyAttribute
	}
	var read readSet
	for i, constraint := range claim.Spec.Devices.Constraints {
		switch d := definitions[i]; {
		case d != nil:
			read = read.with(readBy(d))
		case constraint.MatchAttribute != nil:
			read = read.with(attributeNamed(*constraint.MatchAttribute))
		case constraint.DistinctAttribute != nil:
			read = read.with(attributeNamed(*constraint.DistinctAttribute))
		default:
			return anyAttribute
		}
	}
	return read
}

func (a *Allocator) readByRequest(className string, selectors []resourceapi.DeviceSelector, derived []resourceapi.DeviceDerivedAttribute) readSet {
	class, err := a.classes.Get(className)
	if err != nil || len(derived) > 0 {
		return anyAttribute
	}
	return a.readBySelectors(class.Spec.Selectors).with(a.readBySelectors(selectors))
}

func (a *Allocator) readBySelectors(selectors []resourceapi.DeviceSelector) readSet {
	var read readSet
	for _, selector := range selectors {
		if selector.CEL == nil {
			return anyAttribute
		}
		read = read.with(a.readBySelector(selector.CEL.Expression))
	}
	return read
}

// readBySelector compiles the selector once more, because what it was compiled to is not to
// be had any more.
func (a *Allocator) readBySelector(expression string) readSet {
	return selectorReadSets.Get(expression, func() readSet {
		compiled := a.selectors.GetOrCompile(expression)
		if compiled.Error != nil {
			return anyAttribute
		}
		checked, issues := compiled.Environment.Compile(expression)
		if issues.Err() != nil {
			return anyAttribute
		}
		return newReadSet(device.ReadSetOf(checked.NativeRep()))
	})
}
