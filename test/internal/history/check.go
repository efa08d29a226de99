// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// step is what an operation is to one device.
type step struct {
	operation *Operation
	// holds tells whether the claim has the device afterwards.
	holds bool
	// owner is who was read to have it, empty for nobody.
	owner string
	// ordered tells that it matters in which order the claim was written, because of some
	// of its writes it is not known whether they have happened.
	ordered bool
	// recorded tells that the version that the write is based on came of a write in the history. Others are not:
	// who marks a claim for deletion makes a version, and does nothing to its devices.
	recorded bool
}

// state is what there is to know of a device. It is not modified.
type state struct {
	// owner is the UID of the claim that has it, empty if none has.
	owner string
	// versions are twice the versions of claims whose order matters, and one more for that
	// which came of a write without an answer.
	versions map[string]uint64
}

func (s state) equal(other any) bool {
	o := other.(state)
	return s.owner == o.owner && maps.Equal(s.versions, o.versions)
}

// at is the state when a claim has a version.
func (s state) at(uid string, version uint64) state {
	versions := maps.Clone(s.versions)
	if versions == nil {
		versions = map[string]uint64{}
	}
	versions[uid] = version
	return state{s.owner, versions}
}

var model = (&porcupine.NondeterministicModel{
	Init:  func() []any { return []any{state{}} },
	Step:  func(before, input, _ any) []any { return input.(step).from(before.(state)) },
	Equal: func(one, other any) bool { return one.(state).equal(other) },
	DescribeOperation: func(input, _ any) string {
		s := input.(step)
		switch {
		case s.operation.isRead():
			return fmt.Sprintf("read: %q", s.owner)
		case s.holds:
			return fmt.Sprintf("%s has it (%s)", s.operation.Claim, s.operation.Outcome)
		}
		return fmt.Sprintf("%s has it not (%s)", s.operation.Claim, s.operation.Outcome)
	},
	DescribeState: func(s any) string { return fmt.Sprintf("%q", s.(state).owner) },
}).ToModel()

// from are the states that a device can be in afterwards, none if the step can't have been
// made.
func (s step) from(before state) []any {
	switch {
	case s.operation.isRead():
		if s.owner != before.owner {
			return nil
		}
		return []any{before}
	case s.operation.Outcome == Unknown:
		return append(s.written(before), before)
	default:
		return s.written(before)
	}
}

// written are the states after a write, none if it can't have been made.
func (s step) written(before state) []any {
	uid, after := s.operation.UID, before
	if s.ordered {
		version, known := before.versions[uid]
		made := 2 * s.operation.Version
		switch {
		case s.operation.Gone:
			// Whatever the version was, it is the last one.
			made = math.MaxUint64
		case s.operation.Outcome == Unknown:
			base := 2 * s.operation.Base
			// After a write without an answer the version is one that nobody was told.
			if known && (version > base || s.recorded && version != base && version%2 == 0) {
				return nil
			}
			made = base + 1
		}
		// A write that changes nothing makes no version.
		if known && made < version {
			return nil
		}
		after = before.at(uid, made)
	}
	switch {
	case s.holds && before.owner != "" && before.owner != uid:
		return nil
	case s.holds:
		after.owner = uid
	case before.owner == uid:
		after.owner = ""
	}
	return []any{after}
}

// Verdict is what came of checking a history.
type Verdict struct {
	// Operations are how many there were, Devices how many they were about.
	Operations, Devices int
	// Refused are the devices of which the history can't be explained, Undecided those for
	// which the time was too short.
	Refused, Undecided []string
	// Problems are answers that could not be understood.
	Problems []string

	drawings map[string]porcupine.LinearizationInfo
	steps    map[string][]*Operation
}

// Check decides for each device whether its history can be explained, in at most that time
// each.
func (h *History) Check(timeout time.Duration) *Verdict {
	h.mu.Lock()
	defer h.mu.Unlock()
	devices := h.devices()
	v := &Verdict{
		Operations: len(h.operations), Devices: len(devices), Problems: slices.Clone(h.problems),
		drawings: map[string]porcupine.LinearizationInfo{}, steps: map[string][]*Operation{},
	}
	ends := h.ends()
	for _, device := range devices {
		operations := h.of(device, ends)
		result, info := porcupine.CheckOperationsVerbose(model, operations, timeout)
		switch result {
		case porcupine.Ok:
			continue
		case porcupine.Illegal:
			v.Refused = append(v.Refused, device)
		case porcupine.Unknown:
			v.Undecided = append(v.Undecided, device)
		}
		v.drawings[device] = info
		for _, o := range operations {
			v.steps[device] = append(v.steps[device], o.Input.(step).operation)
		}
	}
	return v
}

// ends are when operations were over at the latest.
func (h *History) ends() map[*Operation]time.Duration {
	last := time.Duration(0)
	for _, o := range h.operations {
		last = max(last, o.End)
	}
	ends := make(map[*Operation]time.Duration, len(h.operations))
	for _, o := range h.operations {
		ends[o] = o.End
		if o.Outcome == Unknown {
			if ends[o] = h.until(o); ends[o] < 0 {
				ends[o] = last + 1
			}
		}
	}
	return ends
}

// of are the steps of a device: reads, and writes of claims that ever had it.
func (h *History) of(device string, ends map[*Operation]time.Duration) []porcupine.Operation {
	type claimVersion struct {
		uid     string
		version uint64
	}
	concerned, unsure, recorded := map[string]bool{}, map[string]bool{}, map[claimVersion]bool{}
	for _, o := range h.operations {
		if slices.Contains(o.Devices, device) {
			concerned[o.UID] = true
		}
		if o.Outcome == Unknown {
			unsure[o.UID] = true
		}
		if o.Version > 0 {
			recorded[claimVersion{o.UID, o.Version}] = true
		}
	}
	clients := map[string]int{}
	var steps []porcupine.Operation
	for _, o := range h.operations {
		if !o.isRead() && !concerned[o.UID] {
			continue
		}
		if _, known := clients[o.Program]; !known {
			clients[o.Program] = len(clients)
		}
		steps = append(steps, porcupine.Operation{
			ClientId: clients[o.Program], Call: int64(o.Start), Return: int64(max(ends[o], o.Start)),
			Input: step{
				operation: o, holds: slices.Contains(o.Devices, device), owner: o.Owners[device],
				ordered: unsure[o.UID], recorded: recorded[claimVersion{o.UID, o.Base}],
			},
		})
	}
	return steps
}

// Err is nil if all that was done can be explained.
func (v *Verdict) Err() error {
	var errs []error
	for _, problem := range v.Problems {
		errs = append(errs, errors.New(problem))
	}
	for _, device := range v.Undecided {
		errs = append(errs, fmt.Errorf("device %s: it was not decided in time whether its history can be explained", device))
	}
	for _, device := range v.Refused {
		var lines strings.Builder
		for _, o := range v.steps[device] {
			if !o.isRead() {
				fmt.Fprintf(&lines, "\n  %v to %v: %s", o.Start.Round(time.Millisecond), o.End.Round(time.Millisecond), o)
			}
		}
		errs = append(errs, fmt.Errorf("device %s: no order of these explains what they were told and what was read:%s", device, lines.String()))
	}
	return errors.Join(errs...)
}

// Draw writes a page for each device that was not accepted into a directory.
func (v *Verdict) Draw(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for device, info := range v.drawings {
		if err := porcupine.VisualizePath(model, info, filepath.Join(dir, strings.ReplaceAll(device, "/", "_")+".html")); err != nil {
			return fmt.Errorf("draw the history of device %s: %w", device, err)
		}
	}
	return nil
}
