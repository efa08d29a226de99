// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulate answers where claims would get devices now, and which, without
// creating anything: it asks the allocator of the scheduler for each node.
//
//	result, err := simulate.Run(ctx, state, subject, simulate.Options{Features: features})
//	result.Fits()   // on some node
//
// Of a pod it knows the claims, with the one that the scheduler makes for extended resources, the
// node selector, the node affinity and the tolerations.
// What else a scheduler looks at, such as CPU and memory, it does not.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/clusterstate"
)

// Options are those of the scheduler and its plugin.
type Options struct {
	Features structured.Features
	// FilterTimeout is the time for one node.
	FilterTimeout time.Duration
	// CostBudget and StepBudget are for one node, in CEL cost units and steps.
	CostBudget uint64
	StepBudget int64
	// PreferenceCost and PreferenceSteps are for looking for better sets on one node.
	PreferenceCost  uint64
	PreferenceSteps int64
	// DefaultPreference chooses where nothing else does, "" for nothing.
	DefaultPreference v1alpha1.PreferencePolicy
}

// Result is the answer for all nodes.
type Result struct {
	// Subject is the pod or the claim.
	Subject string `json:"subject"`
	// Allocated claims have their devices already.
	Allocated []Claim `json:"allocated,omitempty"`
	// Error ends the scheduling of the pod on all nodes: claims, classes or devices are at
	// fault, or a limit was crossed.
	Error string `json:"error,omitempty"`
	// Nodes are by name. After an error there are only those before it.
	Nodes []Node `json:"nodes"`
}

// Node says what the claims would get on a node.
type Node struct {
	Name string `json:"name"`
	Fits bool   `json:"fits"`
	// Reason is why they don't fit.
	Reason string `json:"reason,omitempty"`
	// Claims are those that have no devices yet.
	Claims []Claim `json:"claims,omitempty"`
	// Outcome tells how good the devices are by Preferences, empty if none is about them.
	Outcome allocator.PreferenceOutcome `json:"outcome,omitempty"`
	// Preferences are what they say of the devices, the most important one first.
	Preferences []PreferenceValue `json:"preferences,omitempty"`
	// Steps and Evaluations are what the search took, Cuts what it spared. Proven sets needed
	// no evaluation.
	Steps       int64 `json:"steps"`
	Evaluations int64 `json:"evaluations"`
	Proven      int64 `json:"proven"`
	Cuts        int64 `json:"cuts"`
}

// PreferenceValue is what a preference says of the devices that a claim would get.
type PreferenceValue struct {
	Claim string `json:"claim"`
	// Name is that of the preference, with its class if it is defined there.
	Name  string `json:"name"`
	Value int64  `json:"value"`
	// Losses are what a policy counts.
	Losses []allocator.ShapeLoss `json:"losses,omitempty"`
}

// Claim is a claim and its devices.
type Claim struct {
	Name    string   `json:"name"`
	Devices []Device `json:"devices"`
}

// Device is a device and what it is for.
type Device struct {
	Request     string `json:"request"`
	Driver      string `json:"driver"`
	Pool        string `json:"pool"`
	Device      string `json:"device"`
	AdminAccess bool   `json:"adminAccess,omitempty"`
	Shared      bool   `json:"shared,omitempty"`
}

// Fits tells that there is a node for the claims.
func (r *Result) Fits() bool {
	for _, node := range r.Nodes {
		if node.Fits && r.Error == "" {
			return true
		}
	}
	return false
}

// Run asks for all nodes, or for those with the names. The error is about asking.
func Run(ctx context.Context, state *clusterstate.State, subject *clusterstate.Subject, options Options, names ...string) (*Result, error) {
	nodes, err := state.ChosenNodes(names)
	if err != nil {
		return nil, err
	}
	s := &simulation{Options: options, state: state, subject: subject}
	s.problem = state.Problem(subject, options.Features, allocator.WithReasons(), allocator.WithCache(allocator.NewCache()),
		allocator.WithCostBudget(options.CostBudget), allocator.WithStepBudget(options.StepBudget),
		allocator.WithPreferenceBudget(options.PreferenceCost, options.PreferenceSteps), allocator.WithDefaultPreference(options.DefaultPreference))
	s.problem.Options = append(s.problem.Options, allocator.WithShapes(askedShapes(&s.problem)))
	result := &Result{Subject: subject.String(), Nodes: []Node{}}
	for _, claim := range subject.Claims {
		if allocation := claim.Status.Allocation; allocation != nil {
			result.Allocated = append(result.Allocated, ClaimWith(claim, allocation))
		}
	}
	for _, node := range nodes {
		answer, err := s.on(ctx, node)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			result.Error = err.Error()
			break
		}
		result.Nodes = append(result.Nodes, *answer)
	}
	return result, nil
}

// askedShapes are what the claims that there are ask for, as a scheduler that has seen all of them
// knows it.
func askedShapes(problem *allocator.Problem) []allocator.Shape {
	counts := map[allocator.Shape]int{}
	for _, claim := range problem.Allocated {
		for _, shape := range allocator.ShapesOf(claim, problem.Classes) {
			counts[shape]++
		}
	}
	return allocator.MostAsked(counts)
}

type simulation struct {
	Options
	state   *clusterstate.State
	subject *clusterstate.Subject
	problem allocator.Problem
}

// on asks for one node. The error is one that is the same for all nodes.
func (s *simulation) on(ctx context.Context, node *corev1.Node) (*Node, error) {
	answer := &Node{Name: node.Name}
	reason, err := excluded(ctx, s.subject, node)
	if err != nil {
		return nil, err
	}
	pending := s.state.PendingOn(s.subject, node)
	if reason != "" || len(pending) == 0 {
		answer.Fits, answer.Reason = reason == "", reason
		return answer, nil
	}
	a, err := s.problem.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, s.FilterTimeout)
	defer cancel()
	allocations, details, err := a.AllocateWithDetails(limited, node, pending)
	stats := details.Stats
	answer.Steps, answer.Evaluations, answer.Proven, answer.Cuts = stats.Steps, stats.Evaluations, stats.SetsProven, stats.Cuts
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		answer.Reason = err.Error()
		if failure, ok := errors.AsType[*allocator.EvaluationError](err); ok {
			answer.Reason = failure.Detail()
		}
	case err != nil && limited.Err() != nil:
		return nil, fmt.Errorf("node %s: no answer within %s: %w", node.Name, s.FilterTimeout, err)
	case err != nil:
		return nil, err
	default:
		answer.Fits = true
		for i := range allocations {
			answer.Claims = append(answer.Claims, ClaimWith(pending[i], &allocations[i]))
		}
		answer.Outcome = details.Outcome
		for _, p := range details.Preferences {
			answer.Preferences = append(answer.Preferences, PreferenceValue{Claim: klog.KObj(pending[p.Claim]).String(), Name: p.Name, Value: p.Value, Losses: p.Losses})
		}
	}
	return answer, nil
}

// ClaimWith is a claim with the devices of an allocation.
func ClaimWith(claim *resourceapi.ResourceClaim, allocation *resourceapi.AllocationResult) Claim {
	result := Claim{Name: claim.Namespace + "/" + claim.Name, Devices: []Device{}}
	for _, r := range allocation.Devices.Results {
		result.Devices = append(result.Devices, Device{
			Request: r.Request, Driver: r.Driver, Pool: r.Pool, Device: r.Device,
			AdminAccess: ptr.Deref(r.AdminAccess, false), Shared: r.ShareID != nil,
		})
	}
	return result
}
