// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/internal/clusterstate"
)

// ExpressionError is a mistake in an expression that is evaluated for [Report.Satisfies].
type ExpressionError struct{ error }

// Unwrap returns the mistake.
func (e *ExpressionError) Unwrap() error { return e.error }

// Only returns the PodGroup of an input that asks about a single PodGroup and about no pods outside of the group. Otherwise, it
// returns nil.
func Only(state *clusterstate.State) *schedulingapi.PodGroup {
	asked := state.Asked()
	if len(asked.Groups) != 1 || slices.ContainsFunc(asked.Pods, func(pod *corev1.Pod) bool { return state.GroupOf(pod) == nil }) {
		return nil
	}
	return asked.Groups[0]
}

// Satisfies reports whether the chosen nodes, together with the nodes that run pods of the group, satisfy an expression over nodes.
// It evaluates the expression as the node set constraint of a group whose pods all run. The report must contain chosen nodes.
func (r *Report) Satisfies(ctx context.Context, expression string) (bool, error) {
	q := r.question
	if _, err := q.search.Environment().Compile(ctx, expression); err != nil {
		return false, &ExpressionError{err}
	}
	constraint := *q.search.Constraint
	constraint.Expression, constraint.Variables, constraint.Preference = expression, nil, ""
	search := &nodeset.Search{
		Chooser: q.search.Chooser, Compiled: q.prepare,
		Group: &nodeset.Group{Namespace: q.search.Namespace, Name: q.search.Name, Constraint: &constraint},
	}
	search.Options, _ = nodeset.Limits()
	problem, err := nodeset.NewProblem(search.Group, 0, 1)
	if err != nil {
		return false, err
	}
	prepared, err := q.prepare(ctx, problem)
	if err != nil {
		return false, err
	}
	reads := nodeset.ReadingOf(prepared)
	if err := search.Read(reads); err != nil {
		return false, &ExpressionError{err}
	}
	if reads.Devices() && !q.search.ReadsDevices {
		return false, &ExpressionError{errors.New("n.devices is not available, because the constraint of the group does not read the devices of the pods")}
	}
	for i := range q.search.Nodes {
		n, err := q.asRunning(ctx, i, reads)
		if err != nil {
			return false, err
		}
		if n != nil {
			search.Nodes = append(search.Nodes, *n)
		}
	}
	return search.Holds(ctx)
}

// asRunning returns a node as it would be if the chosen pods ran there. It returns nil if no pod of the group is on the node.
func (q *question) asRunning(ctx context.Context, node int, reads *nodeset.Reading) (*nodeset.Node, error) {
	from := &q.search.Nodes[node]
	n := &nodeset.Node{Name: from.Name, Labels: from.Labels, Slices: from.Slices, Placed: true, Pods: slices.Clone(from.Pods)}
	var devices []allocator.AllocatedDevice
	for _, subject := range q.running {
		if subject.Pod.Spec.NodeName == n.Name {
			devices = append(devices, q.has(subject)...)
		}
	}
	for kind, members := range q.search.Seats(ctx, q.choice) {
		for i, at := range members {
			m := &q.choice.Members[at]
			if m.Node != node {
				continue
			}
			n.Pods = append(n.Pods, q.search.Waiting[kind][i])
			devices = append(devices, q.has(q.hosts.kinds[kind][i])...)
			if reads.Devices() {
				results := from.Sets[kind][m.Set].Results
				for r := range results {
					for d := range results[r].Devices.Results {
						devices = append(devices, nodeset.Published(&results[r].Devices.Results[d], q.slices))
					}
				}
			}
		}
	}
	if len(n.Pods) == 0 {
		return nil, nil
	}
	for _, pod := range n.Pods {
		n.Running = append(n.Running, reads.OfPod(pod))
	}
	if !reads.Devices() {
		return n, nil
	}
	var err error
	n.Has, err = reads.SetOf(devices, nil)
	return n, err
}
