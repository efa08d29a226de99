// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/internal/inventory"
	"github.com/celset/celset/allocator/internal/requests"
	"github.com/celset/celset/allocator/internal/view"
	"github.com/celset/celset/cel/device/bitset"
)

// Verdict is the result of the selectors for a device.
type Verdict int8

const (
	// Unknown means that the selectors have not been evaluated for the device, or that a selector failed.
	Unknown Verdict = iota
	// Selected means that all selectors are true for the device.
	Selected
	// NotSelected means that a selector is false for the device.
	NotSelected
)

// Selectors holds the selectors of a request and its class, with their verdicts on the devices of a node.
type Selectors struct {
	evaluator *Evaluator
	class     *resourceapi.DeviceClass
	own       []resourceapi.DeviceSelector
	// judged holds the positions of devices with a verdict. passed holds the positions of devices with the verdict Selected.
	judged, passed bitset.Set
	row            *Row
	last           judgement
}

// Init prepares the selectors of a request for a node with the given number of devices. row shares verdicts, and may be nil.
func (s *Selectors) Init(e *Evaluator, r *requests.Request, devices int, row *Row) {
	sets := bitset.NewList(2, devices)
	*s = Selectors{evaluator: e, class: r.Class, own: r.Spec.Selectors, judged: sets.At(0), passed: sets.At(1), row: row}
}

// Verdict returns the verdict on the device at a position.
func (s *Selectors) Verdict(position int) Verdict {
	switch {
	case !s.judged.Has(position):
		return Unknown
	case s.passed.Has(position):
		return Selected
	default:
		return NotSelected
	}
}

// Judged returns the devices with a verdict. Callers must not modify the set.
func (s *Selectors) Judged() bitset.Set { return s.judged }

// Passed returns the devices with the verdict Selected. Callers must not modify the set.
func (s *Selectors) Passed() bitset.Set { return s.passed }

func (s *Selectors) enter(position int, passes bool) {
	s.judged.Add(position)
	if passes {
		s.passed.Add(position)
	}
}

// Select reports whether the selectors select the device and the node can use it. An error names the claim of r.
func (s *Selectors) Select(r *requests.Request, c *inventory.Candidate) (bool, error) {
	if s.evaluator.NeverSelects(c) {
		return false, nil
	}
	if known := s.Verdict(c.Position); known != Unknown {
		return known == Selected, nil
	}
	// Look up verdicts only for devices that this search reaches, because reasons must not depend on other searches.
	if s.row != nil {
		if known := s.row.Of(c.Position); known != Unknown {
			s.enter(c.Position, known == Selected)
			return known == Selected, nil
		}
	}
	passes, err := s.judge(r, c)
	if err != nil {
		return false, err
	}
	s.enter(c.Position, passes)
	if s.row != nil {
		s.row.Enter(c.Position, passes)
	}
	return passes, nil
}

// LookUpOrdinary copies the cached verdicts on all ordinary devices, without the devices in others.
func (s *Selectors) LookUpOrdinary(ordinary, others bitset.Set) {
	if s.row == nil {
		return
	}
	for w, wanted := range ordinary {
		if others != nil {
			wanted &^= others[w]
		}
		known, passed := s.row.Word(w)
		s.judged[w] |= known & wanted
		s.passed[w] |= passed & known & wanted
	}
}

func (s *Selectors) evaluate(r *requests.Request, c *inventory.Candidate) (bool, error) {
	s.evaluator.Evaluated++
	passes, err := s.evaluator.matches(fmt.Sprintf("class %s", s.class.Name), s.class.Spec.Selectors, c)
	if err != nil || !passes {
		return false, err
	}
	passes, err = s.evaluator.matches(fmt.Sprintf("claim %s", klog.KObj(r.Claim)), s.own, c)
	if err != nil || !passes {
		return false, err
	}
	return c.IsFor(s.evaluator.Features, s.evaluator.Node)
}

// Row keeps the verdicts of a request's selectors for several searches over the same view.
type Row struct {
	// judged and passes have a bit for each device. Enter sets passes before judged, so that readers see a valid verdict.
	judged, passes []atomic.Uint64
}

// NewRow returns an empty row for the given number of devices.
func NewRow(devices int) *Row {
	words := bitset.Words(devices)
	return &Row{judged: make([]atomic.Uint64, words), passes: make([]atomic.Uint64, words)}
}

// Enter stores the verdict on a device.
func (r *Row) Enter(device int, passes bool) {
	if passes {
		r.passes[device/64].Or(1 << (device % 64))
	}
	r.judged[device/64].Or(1 << (device % 64))
}

// Word returns the verdicts on 64 devices, beginning with position 64*w. Devices with a bit in known have a verdict.
func (r *Row) Word(w int) (known, passes uint64) {
	known = r.judged[w].Load()
	return known, r.passes[w].Load()
}

// Of returns the verdict on a device.
func (r *Row) Of(device int) Verdict {
	bit := uint64(1) << (device % 64)
	switch {
	case r.judged[device/64].Load()&bit == 0:
		return Unknown
	case r.passes[device/64].Load()&bit != 0:
		return Selected
	default:
		return NotSelected
	}
}

// Bytes returns the approximate size of the row.
func (r *Row) Bytes() int { return int(unsafe.Sizeof(Row{})) + 16*len(r.judged) }

// Selectors can't distinguish most devices of a node: a class selects a driver, and a request selects a model or an amount of
// memory. Converting a device for upstream's evaluator takes longer than comparing it with the previous device. If both devices
// are equal in the attributes that the selectors read, they have the same verdict.

// judgement is the verdict on the device that was evaluated last.
type judgement struct {
	*inventory.Candidate
	passes bool
	// reads reports whether the selectors read an attribute of devices of the last device's driver. It is nil until needed.
	reads func(resourceapi.QualifiedName) bool
}

// judge evaluates the selectors for the device, or returns the last verdict if the device looks like the last one.
func (s *Selectors) judge(r *requests.Request, c *inventory.Candidate) (bool, error) {
	if err := s.evaluator.Work.Cancelled(); err != nil {
		return false, err
	}
	if s.isLikeLast(c) {
		return s.last.passes, nil
	}
	passes, err := s.evaluate(r, c)
	if err != nil {
		return false, err
	}
	if s.last.Candidate == nil || s.last.Pool.Driver != c.Pool.Driver {
		s.last.reads = nil
	}
	s.last.Candidate, s.last.passes = c, passes
	return passes, nil
}

// isLikeLast reports whether the selectors can't distinguish the device from the device that was evaluated last.
func (s *Selectors) isLikeLast(c *inventory.Candidate) bool {
	last := &s.last
	if s.evaluator.ReadSets == nil || last.Candidate == nil || last.Pool.Driver != c.Pool.Driver {
		return false
	}
	if last.SelectsNodes() || c.SelectsNodes() {
		// The node selector of the device also affects the verdict.
		return false
	}
	if last.reads == nil {
		last.reads = s.evaluator.ReadSets.ReadBy(s.class, s.own).Reader(c.Pool.Driver)
	}
	return view.LookAlike(last.Device, c.Device, last.reads)
}
