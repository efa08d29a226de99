// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
)

// steps lists how the search narrowed the devices of a node: by the selectors of each request, by taints and features, by the
// claims that have devices, and by each condition.
func (q *subjectQuestion) steps(ctx context.Context, on *explain.Explanation) ([]Step, error) {
	if len(on.Requests) == 0 {
		return nil, nil
	}
	var steps []Step
	node := q.state.Node(on.Node)
	problem := explain.Problem{Problem: q.problemOptions(ctx).Problem(q.state, q.subject), NamesAll: true}
	allocator, err := problem.NewAllocator(ctx)
	if err != nil {
		return nil, err
	}
	devices, err := allocator.NodeDevices(node)
	if err != nil {
		return nil, err
	}
	steps = append(steps, Step{Text: "devices on node " + on.Node, Left: len(devices), Failed: len(devices) == 0})
	names := namesOf(on.Requests)
	for i := range on.Requests {
		steps = append(steps, requestSteps(&on.Requests[i], names[i])...)
	}
	if !hasFailed(steps) {
		problem.Claims = q.state.PendingOn(q.subject, node)
		conditions, err := problem.Conditions(ctx)
		if err != nil {
			return nil, err
		}
		steps = append(steps, conditionSteps(conditions, on.Unmet, len(problem.Claims) > 1)...)
	}
	for _, cause := range on.Causes {
		steps = append(steps, Step{Text: cause.Message, Left: -1, Failed: true})
	}
	if !on.Fits && !hasFailed(steps) {
		// Each request and each condition alone can be satisfied, or a request has only alternatives that can't.
		steps = append(steps, Step{Text: firstLine(on.Reason), Left: -1, Failed: true})
	}
	if on.Steps+on.Evaluations+on.Proven+on.Cuts > 0 {
		steps = append(steps, Step{Left: -1, Text: fmt.Sprintf("search: %s, %s, %s accepted without an evaluation, %s cut",
			explain.Counted(on.Steps, "step"), explain.Counted(on.Evaluations, "evaluation"), explain.Counted(on.Proven, "set"), explain.Counted(on.Cuts, "device"))})
	}
	return steps, nil
}

func hasFailed(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.Failed })
}

// namesOf returns a text with the name of each request. It is empty for a single request. If there are several claims, the text
// has the name of the claim, because requests of different claims can have the same name.
func namesOf(requests []explain.Request) []string {
	names := make([]string, len(requests))
	for i, request := range requests {
		if len(requests) > 1 {
			names[i] = " for request " + request.Name
		}
		if slices.ContainsFunc(requests, func(r explain.Request) bool { return r.Claim != request.Claim }) {
			names[i] += " of claim " + request.Claim
		}
	}
	return names
}

// conditionSteps lists the conditions up to the unmet one. A default constraint that applies to several requests is listed once.
func conditionSteps(conditions []explain.Condition, unmet *explain.Condition, withClaim bool) (steps []Step) {
	for i := range conditions {
		step := Step{Text: conditions[i].String(), Left: -1, Failed: conditions[i].Is(unmet)}
		if withClaim {
			step.Text += ", for claim " + conditions[i].Claim
		}
		if last := len(steps) - 1; last >= 0 && steps[last].Text == step.Text {
			steps = steps[:last]
		}
		if steps = append(steps, step); step.Failed {
			break
		}
	}
	return steps
}

// requestSteps lists the steps for a request. The step that leaves too few devices failed. of is the name of the request.
func requestSteps(request *explain.Request, of string) []Step {
	steps := []Step{{Text: "match the selectors" + of, Left: request.Matching}}
	if request.Failed > 0 {
		steps[0].Text += fmt.Sprintf(" (a selector fails on %s)", explain.Counted(int64(request.Failed), "device"))
	}
	if request.Unusable > 0 {
		steps = append(steps, Step{Text: "have no taint and need no missing feature" + of, Left: request.Matching - request.Unusable})
	}
	steps = append(steps, Step{Text: fmt.Sprintf("are free%s, %d wanted", of, request.Wanted), Left: request.Free})
	for i := range steps {
		if steps[i].Left < max(request.Wanted, 1) && !isAlternative(request) {
			steps[i].Failed = true
			return steps[:i+1]
		}
	}
	return steps
}

// isAlternative reports whether a request is one of several alternatives, so that the claim may fit without it.
func isAlternative(request *explain.Request) bool { return strings.Contains(request.Name, "/") }

func (q *subjectQuestion) problemOptions(ctx context.Context) *fit.Options {
	options := q.fitOptions(ctx, q.subject.Pod)
	return &options
}
