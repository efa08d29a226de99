// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fit answers on which nodes the claims of a pod, or a claim, would get devices, and which; and with Why, what
// is in the way on the others. The commands simulate and explain print the same answer.
//
//	state := clusterstate.New(objects)
//	subject, err := state.Subject("pod/train", "default")
//	report, err := fit.Run(ctx, state, subject, options)
//	report.Print(os.Stdout)
package fit

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/clusterstate"
)

// Options are those of the scheduler, and what is asked.
type Options struct {
	Features structured.Features
	// Args are the arguments of the plugin: budgets, the time for a node and the default preference.
	Args *configv1alpha1.DynamicResourcesCELArgs
	// Why asks for the reason on nodes where the claims don't fit, and how good the devices are that claims have.
	Why bool
	// OfGroup leaves out what is checked of the PodGroup of a pod, because the group is asked about.
	OfGroup bool
	// Nodes are the names of those that are asked for, all if it is empty.
	Nodes []string
	// Progress is called before each node, with the number of those that were asked for. It may be nil.
	Progress func(done, all int)
}

// Report is the answer.
type Report struct {
	output.Meta
	// Cluster is where it was asked, if several clusters were.
	Cluster string `json:"cluster,omitempty"`
	// Subject is the pod or the claim.
	Subject string `json:"subject"`
	// Scheduling is what is known of a pod besides its devices.
	Scheduling
	// Allocated claims have their devices already.
	Allocated []explain.Claim `json:"allocated,omitempty"`
	// Scores say how good the devices of allocated claims with preferences are.
	Scores []*explain.Score `json:"scores,omitempty"`
	// Error ends the scheduling of the pod on all nodes: claims, classes or devices are at fault, or a limit was crossed.
	Error string `json:"error,omitempty"`
	// Nodes are by name. After an error there are only those before it.
	Nodes []*explain.Explanation `json:"nodes"`
	// Incomplete: the time was over before all nodes were asked for.
	Incomplete string `json:"incomplete,omitempty"`
}

// Fits reports whether there is a node for the claims, and nothing is known that keeps the pod from it.
func (r *Report) Fits() bool {
	return r.Error == "" && len(r.Refused) == 0 && slices.ContainsFunc(r.Nodes, func(e *explain.Explanation) bool { return e.Fits })
}

// Run asks for the nodes, one after the other. The error is about asking. When the context ends, the report has the nodes
// that were asked for until then.
func Run(ctx context.Context, state *clusterstate.State, subject *clusterstate.Subject, options Options) (*Report, error) {
	nodes, err := state.ChosenNodes(options.Nodes)
	if err != nil {
		return nil, err
	}
	q := &question{Options: options, state: state, subject: subject}
	q.problem = explain.Problem{
		Problem:    options.Problem(state, subject),
		NamesAll:   true, // they were read with the rights of the caller
		TaintRules: state.TaintRules,
	}
	report := &Report{Meta: output.NewMeta(output.Explanation), Subject: subject.String(), Scheduling: schedulingOf(subject.Pod), Nodes: []*explain.Explanation{}}
	if err := q.before(&report.Scheduling); err != nil {
		report.Error = err.Error()
		return report, nil
	}
	if err := q.allocated(ctx, report, nodes); err != nil {
		report.Error = err.Error()
		return report, nil
	}
	for i, node := range nodes {
		if options.Progress != nil {
			options.Progress(i, len(nodes))
		}
		answer, err := q.on(ctx, node)
		if ctx.Err() != nil {
			report.Incomplete = fmt.Sprintf("%d of %d nodes were asked for: %v", i, len(nodes), context.Cause(ctx))
			break
		}
		if err != nil {
			report.Error = err.Error()
			break
		}
		report.Nodes = append(report.Nodes, answer)
	}
	return report, nil
}

// Problem is what the allocator is asked for a subject.
func (o *Options) Problem(state *clusterstate.State, subject *clusterstate.Subject) allocator.Problem {
	budget := allocator.Budget{Cost: uint64(*o.Args.Budget.Cost), Steps: *o.Args.Budget.Steps}
	p := state.Problem(subject, o.Features, allocator.WithCache(allocator.NewCache()),
		allocator.WithBudget(budget), allocator.WithDefaultPreference(o.Args.DefaultPreference))
	p.Options = append(p.Options, allocator.WithShapes(askedShapes(&p)))
	return p
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

type question struct {
	Options
	state   *clusterstate.State
	subject *clusterstate.Subject
	problem explain.Problem
}

// allocated reports the claims that have devices. The error is about preferences.
func (q *question) allocated(ctx context.Context, report *Report, nodes []*corev1.Node) error {
	for _, claim := range q.subject.Claims {
		if claim.Status.Allocation == nil {
			continue
		}
		report.Allocated = append(report.Allocated, explain.ClaimWith(claim, claim.Status.Allocation))
		if !q.Why || !q.problem.Prefers(claim) {
			continue
		}
		score, err := q.problem.Score(ctx, nodes, claim)
		if score != nil {
			report.Scores = append(report.Scores, score)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// on asks for one node. The error is one that is the same for all nodes.
func (q *question) on(ctx context.Context, node *corev1.Node) (*explain.Explanation, error) {
	reason, err := q.excluded(ctx, node)
	if err != nil {
		return nil, err
	}
	onNode := q.problem
	onNode.Claims = q.state.PendingOn(q.subject, node)
	if reason != "" || len(onNode.Claims) == 0 {
		return &explain.Explanation{Node: node.Name, Fits: reason == "", Reason: reason}, nil
	}
	limited, cancel := q.limit(ctx)
	defer cancel()
	answer, err := onNode.Ask(limited, node)
	if err != nil && limited.Err() != nil {
		return nil, fmt.Errorf("node %s: no answer within %s: %w", node.Name, q.Args.FilterTimeout.Duration, err)
	}
	if err != nil {
		return nil, err
	}
	if answer.Fits || !q.Why {
		answer.Why = explain.Why{}
		return answer, nil
	}
	again, cancel := q.limit(ctx)
	defer cancel()
	if err := onNode.Explain(again, node, answer); err != nil {
		answer.Unknown = err.Error()
	}
	return answer, nil
}

// limit is the time for one node.
func (q *question) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if q.Args.FilterTimeout.Duration == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, q.Args.FilterTimeout.Duration)
}
