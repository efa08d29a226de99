// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// Score compares the preferences' values for a claim's devices with the best values that the claim could have.
type Score struct {
	// Claim is "namespace/name".
	Claim string `json:"claim"`
	// Node is the name of the node that has all devices of the claim.
	Node string `json:"node"`
	// Has lists the values for the claim's devices.
	Has []Value `json:"has,omitempty"`
	// Free is the best set of devices that are free or belong to the claim. Ever is the best set of all devices of the node.
	Free Best `json:"free"`
	Ever Best `json:"ever"`
}

// Value is the value of one preference for a set of devices.
type Value struct {
	// Name is the name of the preference, with its class if a class defines it.
	Name  string `json:"name"`
	Value int64  `json:"value"`
	// Losses lists, for a policy, the number of sets of each shape that the devices make unavailable.
	Losses []allocator.ShapeLoss `json:"losses,omitempty"`
	// Error is the reason why there is no value, for example because the devices or the class have changed.
	Error string `json:"error,omitempty"`
}

// Best is the best set of devices that a search found.
type Best struct {
	// Outcome is empty if no set exists. Otherwise it says whether the set is proven to be the best.
	Outcome allocator.PreferenceOutcome `json:"outcome,omitempty"`
	Values  []Value                     `json:"values,omitempty"`
	// Devices lists the devices as "driver/pool/device", in the order of the requests.
	Devices []string `json:"devices,omitempty"`
	// Reason is the reason why no set exists: the devices or the classes have changed since the claim was allocated.
	Reason string `json:"reason,omitempty"`
}

// Prefers reports whether a preference covers the claim. It also returns true if the preference is malformed.
func (p *Problem) Prefers(claim *resourceapi.ResourceClaim) bool {
	return v1alpha1.HasPreference(claim, func(name string) bool {
		class, err := p.Classes.Get(name)
		return err == nil && v1alpha1.HasPreferences(class)
	})
}

// Score compares the devices of a claim with the best set on the same node. It returns nil if no node has all devices of the
// claim. If it returns an error, the score is nil or incomplete.
func (p *Problem) Score(ctx context.Context, nodes []*v1.Node, claim *resourceapi.ResourceClaim) (*Score, error) {
	node, err := p.nodeOf(ctx, nodes, claim)
	if node == nil || err != nil {
		return nil, err
	}
	s := &Score{Claim: klog.KObj(claim).String(), Node: node.Name}
	others := slices.DeleteFunc(slices.Clone(p.Allocated), func(other *resourceapi.ResourceClaim) bool {
		return klog.KObj(other) == klog.KObj(claim)
	})
	if s.Has, err = p.values(ctx, node, claim, others); err != nil {
		return nil, err
	}
	if s.Free, err = p.best(ctx, node, claim, others); err != nil {
		return s, err
	}
	s.Ever, err = p.best(ctx, node, claim, nil)
	return s, err
}

// nodeOf returns the first node that has all devices of the claim, or nil.
func (p *Problem) nodeOf(ctx context.Context, nodes []*v1.Node, claim *resourceapi.ResourceClaim) (*v1.Node, error) {
	a, err := p.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range nodes {
		devices, err := a.NodeDevices(node)
		if err != nil {
			return nil, err
		}
		isElsewhere := func(r resourceapi.DeviceRequestAllocationResult) bool {
			return !slices.Contains(devices, structured.MakeDeviceID(r.Driver, r.Pool, r.Device))
		}
		if results := resultsOf(claim); len(results) > 0 && !slices.ContainsFunc(results, isElsewhere) {
			return node, nil
		}
	}
	return nil, nil
}

// values evaluates the preferences for the claim's devices, in order. allocated holds the other claims. Policies use the
// current allocations of other claims, which may differ from the allocations at the time when the claim was allocated.
func (p *Problem) values(ctx context.Context, node *v1.Node, claim *resourceapi.ResourceClaim, allocated []*resourceapi.ResourceClaim) ([]Value, error) {
	preferences, err := v1alpha1.ResolvePreferences(claim, p.Classes)
	if err != nil {
		return nil, err
	}
	policies, failure := p.policies(ctx, node, claim, allocated)
	var values []Value
	for i := range preferences {
		devices := p.devicesFor(&preferences[i], claim)
		value, err := Value{Name: preferences[i].Label()}, failure
		switch {
		case len(policies) > 0 && policies[0].Preference == i:
			value, policies = newValue(&policies[0]), policies[1:]
		case len(devices) == 0 || preferences[i].Policy != "" && failure == nil:
			continue
		case preferences[i].Policy == "":
			value.Value, err = valueOf(ctx, &preferences[i], devices)
		}
		if err != nil {
			value.Error = err.Error()
		}
		values = append(values, value)
	}
	for i := range policies {
		// The default policy applies to requests that no preference covers.
		values = append(values, newValue(&policies[i]))
	}
	return values, ctx.Err()
}

// policies returns the values of policies for the claim's devices. allocated holds the other claims.
func (p *Problem) policies(ctx context.Context, node *v1.Node, claim *resourceapi.ResourceClaim, allocated []*resourceapi.ResourceClaim) ([]allocator.PreferenceValue, error) {
	with := p.Problem
	with.Allocated = allocated
	a, err := with.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	return a.PolicyValues(ctx, node, claim)
}

// newValue converts a value returned by the allocator.
func newValue(value *allocator.PreferenceValue) Value {
	return Value{Name: value.Name, Value: value.Value, Losses: value.Losses}
}

func valueOf(ctx context.Context, preference *v1alpha1.Preference, devices []*device.Device) (int64, error) {
	e, err := environment()
	if err != nil {
		return 0, err
	}
	expression, err := e.CompileInt(ctx, preference.Expression, preference.Variables...)
	if err != nil {
		return 0, err
	}
	return expression.Value(ctx, devices, cel.NewBudget(cel.DefaultCostLimit))
}

// devicesFor returns those devices of the claim that the preference covers, in the order of the allocation.
func (p *Problem) devicesFor(preference *v1alpha1.Preference, claim *resourceapi.ResourceClaim) []*device.Device {
	var devices []*device.Device
	// Expressions compare devices by identity. So a device that occurs twice must be the same object.
	prepared := map[structured.DeviceID]*device.Device{}
	for _, r := range resultsOf(claim) {
		request, _, _ := strings.Cut(r.Request, "/")
		if len(preference.Requests) > 0 && !slices.Contains(preference.Requests, r.Request) && !slices.Contains(preference.Requests, request) {
			continue
		}
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		if prepared[id] == nil {
			d := p.device(r.Driver, r.Pool, r.Device)
			if d == nil {
				continue
			}
			prepared[id] = device.New(r.Driver, d)
		}
		devices = append(devices, prepared[id])
	}
	return devices
}

// device returns the published device from the newest generation of its pool, or nil.
func (p *Problem) device(driver, pool, name string) *resourceapi.Device {
	var newest *resourceapi.Device
	generation := int64(-1)
	for _, slice := range p.Slices {
		if slice.Spec.Driver != driver || slice.Spec.Pool.Name != pool || slice.Spec.Pool.Generation <= generation {
			continue
		}
		if i := slices.IndexFunc(slice.Spec.Devices, func(d resourceapi.Device) bool { return d.Name == name }); i >= 0 {
			newest, generation = &slice.Spec.Devices[i], slice.Spec.Pool.Generation
		}
	}
	return newest
}

// best searches the best set for the claim as if the claim were not allocated. allocated holds the other claims.
func (p *Problem) best(ctx context.Context, node *v1.Node, claim *resourceapi.ResourceClaim, allocated []*resourceapi.ResourceClaim) (Best, error) {
	with := p.Problem
	with.Allocated = allocated
	with.Options = append(slices.Clone(p.Options), allocator.WithReasons())
	a, err := with.NewAllocator(ctx)
	if err != nil {
		return Best{}, err
	}
	claim = claim.DeepCopy()
	claim.Status = resourceapi.ResourceClaimStatus{}
	results, details, err := a.AllocateWithDetails(ctx, node, []*resourceapi.ResourceClaim{claim})
	if errors.Is(err, structured.ErrFailedAllocationOnNode) {
		return Best{Reason: err.Error()}, nil
	}
	if err != nil {
		return Best{}, err
	}
	best := Best{Outcome: details.Outcome}
	for i := range details.Preferences {
		best.Values = append(best.Values, newValue(&details.Preferences[i]))
	}
	for _, r := range results[0].Devices.Results {
		best.Devices = append(best.Devices, structured.MakeDeviceID(r.Driver, r.Pool, r.Device).String())
	}
	return best, nil
}

// feasible returns the problem without preferences. Preferences don't affect whether a set exists. So a search for any set must
// neither spend time on them nor fail because of them.
func (p *Problem) feasible() *Problem {
	out := p.with(func(*Problem) {})
	out.Options = append(slices.Clone(p.Options), allocator.WithoutPreferences())
	return out
}
