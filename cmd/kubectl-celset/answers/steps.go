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
	short := false
	for i := range on.Requests {
		of := requestSteps(&on.Requests[i], len(on.Requests) > 1)
		short = short || slices.ContainsFunc(of, func(s Step) bool { return s.Failed })
		steps = append(steps, of...)
	}
	if on.Fits || !short {
		problem.Claims = q.state.PendingOn(q.subject, node)
		conditions, err := problem.Conditions(ctx)
		if err != nil {
			return nil, err
		}
		for i := range conditions {
			failed := conditions[i].Is(on.Unmet)
			steps = append(steps, Step{Text: conditions[i].String(), Left: -1, Failed: failed})
			if failed {
				break
			}
		}
	}
	for _, cause := range on.Causes {
		steps = append(steps, Step{Text: cause.Message, Left: -1, Failed: true})
	}
	if on.Steps+on.Evaluations+on.Proven+on.Cuts > 0 {
		steps = append(steps, Step{Left: -1, Text: fmt.Sprintf("search: %s, %s, %s without an evaluation, %s cut",
			explain.Counted(on.Steps, "step"), explain.Counted(on.Evaluations, "evaluation"), explain.Counted(on.Proven, "set"), explain.Counted(on.Cuts, "device"))})
	}
	return steps, nil
}

// requestSteps lists the steps for a request. The step that leaves too few devices failed.
func requestSteps(request *explain.Request, several bool) []Step {
	of := ""
	if several {
		of = " for request " + request.Name
	}
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
