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

// A step is the effect of one operation on one device.
type step struct {
	operation *Operation
	// holds is set if the written claim has the device after the write.
	holds bool
	// owner is, for a read, the UID of the claim that had the device, or "".
	owner string
	// ordered is set if some writes of the claim have an unknown outcome. Then the versions of the claim's writes restrict
	// their order.
	ordered bool
	// recorded is set if a write in the history produced the version on which this write is based. Otherwise a writer outside
	// of the history did. For example, marking a claim for deletion produces a version but does not change its devices.
	recorded bool
}

// A state is a state of one device in the model. It is immutable.
type state struct {
	// owner is the UID of the claim that has the device, or "".
	owner string
	// versions maps a claim, if the order of its versions matters, to twice its version. After a write with unknown outcome,
	// the value is twice the version that the write was based on, plus one.
	versions map[string]uint64
}

func (s state) equal(other any) bool {
	o := other.(state)
	return s.owner == o.owner && maps.Equal(s.versions, o.versions)
}

// at returns the state with another version of a claim.
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

// from returns the possible states of the device after the step. The result is empty if the step is impossible in the state
// before.
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

// written returns the possible states after a write that was applied. The result is empty if the write is impossible in the
// state before.
func (s step) written(before state) []any {
	uid, after := s.operation.UID, before
	if s.ordered {
		version, known := before.versions[uid]
		made := 2 * s.operation.Version
		switch {
		case s.operation.Gone:
			// After the deletion, the claim has no further version.
			made = math.MaxUint64
		case s.operation.Outcome == Unknown:
			base := 2 * s.operation.Base
			// If the base is recorded, this write can only follow the write that made the base, or a write with unknown
			// outcome (an odd version).
			if known && (version > base || s.recorded && version != base && version%2 == 0) {
				return nil
			}
			made = base + 1
		}
		// A write that changes no field does not make a new version.
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

// A Verdict is the result of checking a history.
type Verdict struct {
	// Operations and Devices are the numbers of operations and of devices in the history.
	Operations, Devices int
	// Refused are the devices whose operations no valid order explains. Undecided are the devices whose check exceeded the
	// timeout.
	Refused, Undecided []string
	// Problems are responses that could not be parsed.
	Problems []string

	drawings map[string]porcupine.LinearizationInfo
	steps    map[string][]*Operation
}

// Check decides for each device whether its history can be explained, in these steps. The timeout applies to each device.
//
//  1. Compute the latest end of each operation. An unknown write ends when a later version of its claim exists (ends).
//  2. Collect the device's steps: reads, and writes of claims that ever had it (of).
//  3. Let porcupine order the steps so that each is possible in the state that the previous steps leave (step.from).
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

// ends maps each operation to the latest time at which it may have taken effect.
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

// of returns the steps of a device: all reads, and all writes of claims that had the device at some time.
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

// Err returns an error if the operations of some device can't be explained, or were not checked.
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

// Draw writes a page with a picture of the operations for each device that was refused or undecided.
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
