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

// Verdict is what is known about a device and selectors.
type Verdict int8

const (
	// Unknown is said of a device for which they were not evaluated, or one of them failed.
	Unknown Verdict = iota
	// Selected devices pass all of them.
	Selected
	// NotSelected devices don't.
	NotSelected
)

// Selectors are those of a request and its class, and what they said of the devices of a node.
type Selectors struct {
	evaluator *Evaluator
	class     *resourceapi.DeviceClass
	own       []resourceapi.DeviceSelector
	// known and passed have a bit for each position: passed is within known.
	known, passed bitset.Set
	row           *Row
	last          judgement
}

// Init makes them those of a request on a node with so many devices. row is where verdicts are
// remembered for other searches, nil if they are not.
func (s *Selectors) Init(e *Evaluator, r *requests.Request, devices int, row *Row) {
	sets := bitset.NewList(2, devices)
	*s = Selectors{evaluator: e, class: r.Class, own: r.Spec.Selectors, known: sets.At(0), passed: sets.At(1), row: row}
}

// Verdict is what they said of the device in some position.
func (s *Selectors) Verdict(position int) Verdict {
	switch {
	case !s.known.Has(position):
		return Unknown
	case s.passed.Has(position):
		return Selected
	default:
		return NotSelected
	}
}

// Known has the devices for which there is a verdict, Passed those of them that are selected.
// Neither may be modified.
func (s *Selectors) Known() bitset.Set { return s.known }

// Passed has the devices that are selected.
func (s *Selectors) Passed() bitset.Set { return s.passed }

func (s *Selectors) enter(position int, passes bool) {
	s.known.Add(position)
	if passes {
		s.passed.Add(position)
	}
}

// Select reports whether the device passes the selectors and is for the node. An error names the
// claim of the request, which is one of those with these selectors.
func (s *Selectors) Select(r *requests.Request, c *inventory.Candidate) (bool, error) {
	if s.evaluator.NeverSelects(c) {
		return false, nil
	}
	if known := s.Verdict(c.Position); known != Unknown {
		return known == Selected, nil
	}
	// Only what the search comes to is looked up: reasons go by what it saw, not by what
	// others did.
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

// Recall looks up what is remembered of ordinary devices that are not among others.
func (s *Selectors) Recall(ordinary, others bitset.Set) {
	if s.row == nil {
		return
	}
	for w, wanted := range ordinary {
		if others != nil {
			wanted &^= others[w]
		}
		known, passed := s.row.Word(w)
		s.known[w] |= known & wanted
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

// Row remembers which devices pass the selectors of a request. A verdict is
// entered when the selectors were evaluated for the device.
type Row struct {
	// known and passes have a bit for each device. A bit of known is set after that of
	// passes.
	known, passes []atomic.Uint64
}

// NewRow has room for so many devices.
func NewRow(devices int) *Row {
	words := bitset.Words(devices)
	return &Row{known: make([]atomic.Uint64, words), passes: make([]atomic.Uint64, words)}
}

// Enter remembers a verdict.
func (r *Row) Enter(device int, passes bool) {
	if passes {
		r.passes[device/64].Or(1 << (device % 64))
	}
	r.known[device/64].Or(1 << (device % 64))
}

// Word has what is remembered of the devices from position 64*w on.
func (r *Row) Word(w int) (known, passes uint64) {
	known = r.known[w].Load()
	return known, r.passes[w].Load()
}

// Of is what is remembered of a device.
func (r *Row) Of(device int) Verdict {
	bit := uint64(1) << (device % 64)
	switch {
	case r.known[device/64].Load()&bit == 0:
		return Unknown
	case r.passes[device/64].Load()&bit != 0:
		return Selected
	default:
		return NotSelected
	}
}

// Bytes is about what it takes.
func (r *Row) Bytes() int { return int(unsafe.Sizeof(Row{})) + 16*len(r.known) }

// Most devices of a node look the same to selectors: a class asks for a driver, a request
// for a model or so much memory. A device is put together for upstream's evaluator with all
// that it has, which takes longer than to see that it is like the last one in everything
// that the selectors read. What they said of that one, they say of this one.

// judgement is what selectors said of a device.
type judgement struct {
	*inventory.Candidate
	passes bool
	// reads tells which attributes of devices of that driver the selectors read.
	reads func(resourceapi.QualifiedName) bool
}

// judge reports whether the device passes the selectors.
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

// isLikeLast reports whether selectors can't tell the device from the last one that they were
// evaluated for.
func (s *Selectors) isLikeLast(c *inventory.Candidate) bool {
	last := &s.last
	if s.evaluator.ReadSets == nil || last.Candidate == nil || last.Pool.Driver != c.Pool.Driver {
		return false
	}
	if last.SelectsNodes() || c.SelectsNodes() {
		// Which node it is matters as well.
		return false
	}
	if last.reads == nil {
		last.reads = s.evaluator.ReadSets.ReadBy(s.class, s.own).Reader(c.Pool.Driver)
	}
	return view.LookAlike(last.Device, c.Device, last.reads)
}
