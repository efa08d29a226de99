// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/fingerprint"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device"
)

func (a *Allocator) readByClaim(claim *resourceapi.ResourceClaim) view.ReadSet {
	read := a.readByConstraints(claim)
	for i := range claim.Spec.Devices.Requests {
		r := &claim.Spec.Devices.Requests[i]
		if exactly := r.Exactly; exactly != nil {
			read = read.With(a.readByRequest(exactly.DeviceClassName, exactly.Selectors, exactly.DerivedAttributes))
		}
		for j := range r.FirstAvailable {
			sub := &r.FirstAvailable[j]
			read = read.With(a.readByRequest(sub.DeviceClassName, sub.Selectors, sub.DerivedAttributes))
		}
	}
	return read
}

func (a *Allocator) readByConstraints(claim *resourceapi.ResourceClaim) view.ReadSet {
	definitions, err := a.resolved(claim).definitions()
	if err != nil {
		return view.AnyAttribute
	}
	var read view.ReadSet
	for i, constraint := range claim.Spec.Devices.Constraints {
		switch d := definitions.referred[i]; {
		case d != nil:
			read = read.With(d.reads)
		case constraint.MatchAttribute != nil:
			read = read.With(view.ReadAttribute(*constraint.MatchAttribute))
		case constraint.DistinctAttribute != nil:
			read = read.With(view.ReadAttribute(*constraint.DistinctAttribute))
		default:
			return view.AnyAttribute
		}
	}
	for _, d := range definitions.defaults {
		read = read.With(d.reads)
	}
	for _, p := range definitions.preferences {
		read = read.With(p.reads)
		for _, shape := range p.shapes {
			read = read.With(a.shapes.idle().readByClaim(a.shapes.claimFor(shape)))
		}
	}
	return read
}

func (a *Allocator) readByRequest(className string, selectors []resourceapi.DeviceSelector, derived []resourceapi.DeviceDerivedAttribute) view.ReadSet {
	class, err := a.classes.Get(className)
	if err != nil || len(derived) > 0 {
		return view.AnyAttribute
	}
	return readSets{a}.ReadBy(class, selectors)
}

func (a *Allocator) readBySelectors(selectors []resourceapi.DeviceSelector) view.ReadSet {
	var read view.ReadSet
	for _, selector := range selectors {
		if selector.CEL == nil {
			return view.AnyAttribute
		}
		read = read.With(a.readBySelector(selector.CEL.Expression))
	}
	return read
}

// readBySelector compiles the selector once more, because what it was compiled to is not to
// be had any more.
func (a *Allocator) readBySelector(expression string) view.ReadSet {
	if read, known := a.prepared.readBy(expression); known {
		return read
	}
	key := analysisKey{expression: expressionKey{text: fingerprint.Of([]byte(expression))}}
	return analyses.Get(key, func() weighed {
		read := view.AnyAttribute
		if compiled := a.selectors.GetOrCompile(expression); compiled.Error == nil {
			if checked, issues := compiled.Environment.Compile(expression); issues.Err() == nil {
				read = view.NewReadSet(device.ReadSetOf(checked.NativeRep()))
			}
		}
		return weighed{read, read.Bytes()}
	}).value.(view.ReadSet)
}

// readSets tells what selectors read.
type readSets struct{ allocator *Allocator }

// ReadBy is what the selectors of a class and of a request read.
func (r readSets) ReadBy(class *resourceapi.DeviceClass, own []resourceapi.DeviceSelector) view.ReadSet {
	return r.allocator.readBySelectors(class.Spec.Selectors).With(r.allocator.readBySelectors(own))
}
