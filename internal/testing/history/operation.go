// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"strings"
	"time"
)

// Outcome is what is known of a write.
type Outcome string

// What can be known.
const (
	// Applied says that the API server has stored the write.
	Applied Outcome = "applied"
	// Unknown says that it may have, once, at any time since the write began.
	Unknown Outcome = "unknown"
)

// Operation is a write of a claim, or what was read of all claims. Those that were refused
// have done nothing and are none.
type Operation struct {
	// Program is who made it, Verb what it asked for: "update resourceclaims/status".
	Program string `json:"program"`
	Verb    string `json:"verb"`
	// Claim is the name of the claim that was written, "namespace/name", UID its UID.
	Claim string `json:"claim,omitempty"`
	UID   string `json:"uid,omitempty"`
	// Devices are what the claim has after the write: "driver/pool/device".
	Devices []string `json:"devices,omitempty"`
	// Owners are the UIDs of claims by device, as they were read; two with a comma.
	Owners  map[string]string `json:"owners,omitempty"`
	Outcome Outcome           `json:"outcome"`
	// Gone says that there is no claim any more.
	Gone bool `json:"gone,omitempty"`
	// Base is the version that the write changes, Version what it made of it; zero if that
	// is not known.
	Base    uint64 `json:"base,omitempty"`
	Version uint64 `json:"version,omitempty"`
	// Start and End are times since the history began. What is unknown has no end.
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
}

func (o *Operation) isRead() bool { return o.Owners != nil }

// String tells the operation in a line.
func (o *Operation) String() string {
	if o.isRead() {
		return fmt.Sprintf("%s reads %d devices that are in use", o.Program, len(o.Owners))
	}
	devices := "no devices"
	if len(o.Devices) > 0 {
		devices = strings.Join(o.Devices, ", ")
	}
	return fmt.Sprintf("%s: %s %s with %s (%s)", o.Program, o.Verb, o.Claim, devices, o.Outcome)
}
