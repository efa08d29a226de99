// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fit finds the nodes and devices that the claims of a pod, or a single claim, would get. With Why it also explains why
// other nodes don't fit. The commands simulate and explain print the result.
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

// Options hold the settings of the simulated scheduler (Features, Args), and the questions that the report answers.
type Options struct {
	Features structured.Features
	// Args are the arguments of the plugin: budgets, time per node and default preference.
	Args *configv1alpha1.DynamicResourcesCELArgs
	// Why requests the reasons why claims don't fit on a node, and the preference values of allocated devices.
	Why bool
	// Counts keeps the numbers of devices in the answers of nodes that fit.
	Counts bool
	// OfGroup omits the checks of a pod's PodGroup, because the caller asks about the whole group.
	OfGroup bool
	// Nodes are the names of the nodes to check. Empty means all nodes.
	Nodes []string
	// Progress is called before each node with the number of finished nodes. It may be nil.
	Progress func(done, all int)
}

// Report holds the nodes and devices that the claims of the subject would get.
type Report struct {
	output.Meta
	// Cluster is the name of the cluster, if several clusters were asked.
	Cluster string `json:"cluster,omitempty"`
	// Subject is the pod or the claim.
	Subject string `json:"subject"`
	// Scheduling holds facts about the scheduling of a pod other than its devices.
	Scheduling
	// Allocated are the claims that already have devices.
	Allocated []explain.Claim `json:"allocated,omitempty"`
	// Scores are the preference values of allocated claims.
	Scores []*explain.Score `json:"scores,omitempty"`
	// Added are the attributes of DeviceAttributes objects that the claims read. It is set only with Why.
	Added []Addition `json:"added,omitempty"`
	// Error ends the scheduling of the pod on all nodes. Its cause is in claims, classes or devices, or a limit was exceeded.
	Error string `json:"error,omitempty"`
	// Nodes is sorted by name. If Error is set, Nodes has only the nodes that were checked before the error.
	Nodes []*explain.Explanation `json:"nodes"`
	// Incomplete is set, with the reason, if the time limit was exceeded before all nodes were checked.
	Incomplete string `json:"incomplete,omitempty"`
}

// Fits reports whether the claims fit on at least one node, and no reason in the report rejects the pod.
func (r *Report) Fits() bool {
	return r.Error == "" && len(r.Refused) == 0 && slices.ContainsFunc(r.Nodes, func(e *explain.Explanation) bool { return e.Fits })
}

// Run checks the nodes one by one. If the context ends, the report contains the nodes that were checked before. Run returns an
// error only if it can't check the subject at all.
func Run(ctx context.Context, state *clusterstate.State, subject *clusterstate.Subject, options Options) (*Report, error) {
	nodes, err := state.ChosenNodes(options.Nodes)
	if err != nil {
		return nil, err
	}
	q := &question{Options: options, state: state, subject: subject}
	q.problem = explain.Problem{
		Problem:    options.Problem(state, subject),
		NamesAll:   true, // the caller may read all objects
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
	if q.Why {
		if report.Added, err = q.additions(ctx); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	if err := q.problem.Ready(ctx); err != nil {
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

// Problem returns the allocation problem of a subject.
func (o *Options) Problem(state *clusterstate.State, subject *clusterstate.Subject) allocator.Problem {
	budget := allocator.Budget{Cost: uint64(*o.Args.Budget.Cost), Steps: *o.Args.Budget.Steps}
	p := state.Problem(subject, o.Features, allocator.WithCache(allocator.NewCache()),
		allocator.WithBudget(budget), allocator.WithDefaultPreference(o.Args.DefaultPreference))
	p.Options = append(p.Options, allocator.WithShapes(askedShapes(&p)))
	return p
}

// askedShapes returns the set shapes that existing claims request most. A scheduler that has seen all these claims would prefer
// to keep space for the same shapes.
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

// allocated adds the claims that already have devices to the report. It returns an error if it can't evaluate their
// preferences.
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

// on checks one node. An error would end the scheduling of the pod on all nodes.
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
		if !q.Counts {
			answer.Why = explain.Why{}
		}
		return answer, nil
	}
	again, cancel := q.limit(ctx)
	defer cancel()
	if err := onNode.Explain(again, node, answer); err != nil {
		answer.Unknown = err.Error()
	}
	return answer, nil
}

// limit returns a context with the time limit for one node.
func (q *question) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if q.Args.FilterTimeout.Duration == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, q.Args.FilterTimeout.Duration)
}
