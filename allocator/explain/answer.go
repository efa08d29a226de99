// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
)

// Explanation describes whether the claims fit on one node and, if not, the obstacles. The plugin writes it into conditions and
// events. kubectl celset prints it and returns it as data.
type Explanation struct {
	Node string `json:"name"`
	Fits bool   `json:"fits"`
	// Reason is the reason why the claims don't fit, in the words of the scheduler.
	Reason string `json:"reason,omitempty"`
	// Failed is true if a CEL constraint failed on devices of the node, or if the devices of the node can't be determined. Then
	// Reason contains the details, and Requests is the only field of Why that is set.
	Failed bool `json:"failed,omitempty"`
	// Claims lists the claims with the devices that they would get.
	Claims []Claim `json:"claims,omitempty"`
	// Outcome is the quality of the devices according to the preferences. It is empty if no preference covers the devices.
	Outcome allocator.PreferenceOutcome `json:"outcome,omitempty"`
	// Preferences lists the values of the preferences for the devices, the most important preference first.
	Preferences []ClaimValue `json:"preferences,omitempty"`
	Why         `json:"why,omitzero"`
	Effort

	allocations []resourceapi.AllocationResult
}

// Allocations returns the allocations that the claims would get, in the order of the claims. It is empty if they don't fit.
func (e *Explanation) Allocations() []resourceapi.AllocationResult { return e.allocations }

// Why lists the obstacles that keep claims from being allocated on a node.
type Why struct {
	// Requests lists the requests of all claims in order. Each alternative has an entry of its own.
	Requests []Request `json:"requests,omitempty"`
	// Unmet is the first condition that no set of free devices satisfies. It is nil if the claims fit, or never fit.
	Unmet *Condition `json:"unmet,omitempty"`
	// Causes lists obstacles other than conditions and claims. If the claims fit after removing a single cause, Causes lists
	// each such cause. Otherwise all listed causes must be removed together.
	Causes []Cause `json:"causes,omitempty"`
	// Never is true if the claims would not fit even if all devices of the node were free, and no cause was found.
	Never bool `json:"never,omitempty"`
	// InTheWay lists allocated claims. Some of them must give back devices. OthersInTheWay counts claims that aren't named.
	InTheWay       []Owner `json:"inTheWay,omitempty"`
	OthersInTheWay *Others `json:"othersInTheWay,omitempty"`
	// Unknown is the error that ended the search for obstacles before it was complete.
	Unknown string `json:"unknown,omitempty"`
}

// Request is a request of one of the claims.
type Request struct {
	// Claim is "namespace/name". Name is the name of the request, or "request/subrequest" for an alternative.
	Claim  string `json:"claim"`
	Name   string `json:"name"`
	Wanted int    `json:"wanted"`
	// Matching is the number of devices that pass the selectors. Unusable is the number of matching devices that can't be
	// allocated because of a taint or a feature. Free is the number of matching devices that can be allocated now. Failed is
	// the number of devices on which a selector fails.
	Matching int `json:"matching"`
	Unusable int `json:"unusable,omitempty"`
	Free     int `json:"free"`
	Failed   int `json:"failed,omitempty"`
}

func (r Request) hasNone() bool { return r.Matching == 0 }

// Effort is the work of a search: steps, evaluated sets, sets proved without an evaluation, and skipped devices.
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

// Claim is an allocated claim with its devices.
type Claim struct {
	// Name is "namespace/name".
	Name    string   `json:"name"`
	Devices []Device `json:"devices"`
}

// Device is an allocated device with the request that it was allocated for.
type Device struct {
	Request     string `json:"request"`
	Driver      string `json:"driver"`
	Pool        string `json:"pool"`
	Device      string `json:"device"`
	AdminAccess bool   `json:"adminAccess,omitempty"`
	Shared      bool   `json:"shared,omitempty"`
}

// ClaimWith returns the claim with the devices in allocation.
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

// take stores the results and details of an Allocate call.
func (e *Explanation) take(claims []*resourceapi.ResourceClaim, results []resourceapi.AllocationResult, details *allocator.Details) {
	e.Effort, e.allocations = Effort{details.Steps, details.Evaluations, details.SetsProven, details.Cuts}, results
	for i := range results {
		e.Claims = append(e.Claims, ClaimWith(claims[i], &results[i]))
	}
	e.Outcome = details.Outcome
	for _, p := range details.Preferences {
		e.Preferences = append(e.Preferences, ClaimValue{klog.KObj(claims[p.Claim]).String(), Value{Name: p.Name, Value: p.Value, Losses: p.Losses}})
	}
}
