// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
)

// Explanation is the answer for the claims on one node. The plugin writes it into conditions and events, and kubectl celset
// prints it and returns it as data.
type Explanation struct {
	Node string `json:"name"`
	Fits bool   `json:"fits"`
	// Reason says why the claims don't fit, in the scheduler's words.
	Reason string `json:"reason,omitempty"`
	// Failed is true if a CEL constraint failed on devices of the node, or if the devices of the node can't be determined. Reason
	// has the details, and only Requests is set in Why.
	Failed bool `json:"failed,omitempty"`
	// Claims have the devices that they would get.
	Claims []Claim `json:"claims,omitempty"`
	// Outcome rates the devices by Preferences. It is empty if no preference covers them.
	Outcome allocator.PreferenceOutcome `json:"outcome,omitempty"`
	// Preferences have the values of the devices, the most important preference first.
	Preferences []ClaimValue `json:"preferences,omitempty"`
	Why         `json:"why,omitzero"`
	Effort
}

// Why lists the obstacles for claims on a node.
type Why struct {
	// Requests has the requests of all claims in order. Each alternative has its own entry.
	Requests []Request `json:"requests,omitempty"`
	// Unmet is the first condition that leaves no set. It is nil if the claims fit, or do not fit even without any condition.
	Unmet *Condition `json:"unmet,omitempty"`
	// Causes prevent devices from being allocated. If removing one cause is enough for the claims to fit, each such cause is listed.
	// Otherwise all listed causes must be removed.
	Causes []Cause `json:"causes,omitempty"`
	// Never is true if the claims would not fit even if all devices of the node were free, and no cause was found.
	Never bool `json:"never,omitempty"`
	// InTheWay names allocated claims; some of them must give back devices. OthersInTheWay counts claims that the reader may not
	// see.
	InTheWay       []Owner `json:"inTheWay,omitempty"`
	OthersInTheWay *Others `json:"othersInTheWay,omitempty"`
	// Unknown is the error that ended the search for obstacles early.
	Unknown string `json:"unknown,omitempty"`
}

// Request is a request of one of the claims.
type Request struct {
	// Claim is "namespace/name". Name is the name of the request, "request/subrequest" for an alternative.
	Claim  string `json:"claim"`
	Name   string `json:"name"`
	Wanted int    `json:"wanted"`
	// Matching is the number of devices of the node that pass the selectors. Unusable counts matching devices that can never be
	// allocated because of a taint or a feature. Free counts matching devices that can be allocated now. Failed is the number of
	// devices on which a selector fails.
	Matching int `json:"matching"`
	Unusable int `json:"unusable,omitempty"`
	Free     int `json:"free"`
	Failed   int `json:"failed,omitempty"`
}

func (r Request) hasNone() bool { return r.Matching == 0 }

// Effort counts the work of a search: steps, evaluated sets, sets that were proven right without an evaluation, and devices that
// the search skipped.
type Effort struct {
	Steps       int64 `json:"steps"`
	Evaluations int64 `json:"evaluations"`
	Proven      int64 `json:"proven"`
	Cuts        int64 `json:"cuts"`
}

// ClaimValue is the value of a preference for the devices of a claim.
type ClaimValue struct {
	Claim string `json:"claim"`
	Value
}

// Claim is a claim and its devices.
type Claim struct {
	// Name is "namespace/name".
	Name    string   `json:"name"`
	Devices []Device `json:"devices"`
}

// Device is a device and the request that it serves.
type Device struct {
	Request     string `json:"request"`
	Driver      string `json:"driver"`
	Pool        string `json:"pool"`
	Device      string `json:"device"`
	AdminAccess bool   `json:"adminAccess,omitempty"`
	Shared      bool   `json:"shared,omitempty"`
}

// ClaimWith returns a claim with the devices of an allocation.
func ClaimWith(claim *resourceapi.ResourceClaim, allocation *resourceapi.AllocationResult) Claim {
	result := Claim{Name: klog.KObj(claim).String(), Devices: []Device{}}
	for _, r := range allocation.Devices.Results {
		result.Devices = append(result.Devices, Device{
			Request: r.Request, Driver: r.Driver, Pool: r.Pool, Device: r.Device,
			AdminAccess: ptr.Deref(r.AdminAccess, false), Shared: r.ShareID != nil,
		})
	}
	return result
}

// take stores the answer of the allocator.
func (e *Explanation) take(claims []*resourceapi.ResourceClaim, results []resourceapi.AllocationResult, details *allocator.Details) {
	e.Effort = Effort{details.Steps, details.Evaluations, details.SetsProven, details.Cuts}
	for i := range results {
		e.Claims = append(e.Claims, ClaimWith(claims[i], &results[i]))
	}
	e.Outcome = details.Outcome
	for _, p := range details.Preferences {
		e.Preferences = append(e.Preferences, ClaimValue{klog.KObj(claims[p.Claim]).String(), Value{Name: p.Name, Value: p.Value, Losses: p.Losses}})
	}
}
