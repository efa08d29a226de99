// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
)

// question is what is found out for a report.
type question struct {
	fit.Options
	*Report
	state   *clusterstate.State
	group   *schedulingapi.PodGroup
	chooser *nodeset.Chooser
	slices  []*resourceapi.ResourceSlice

	constraint *v1alpha1.NodeSetConstraint
	reading    *nodeset.Reading
	layout     *device.Layout
	// scheduled counts pods with a node, terminating ones, too.
	waiting, running []*clusterstate.Subject
	scheduled        int
	// kinds has the first of the pods that are alike, kindOf the kind of each that waits.
	kinds  []*clusterstate.Subject
	kindOf []int
	// nodes are the infos as the search knows them, why is what is wrong with each for a pod.
	infos    []*corev1.Node
	nodes    []nodeset.Node
	why      []string
	refusals nodeset.Refusals
	// seats is how many pods more may run on nodes on which some do. bytes are those of sets of devices.
	seats, bytes int
	problem      *nodeset.Problem
}

// answer fills the report in. The error is one that ends the scheduling of the group.
func (q *question) answer(ctx context.Context, name string) error {
	if err := q.findPods(); err != nil {
		return err
	}
	if err := q.compile(ctx, name); err != nil {
		return err
	}
	if err := q.findRunning(); err != nil {
		return err
	}
	if len(q.Running) > 0 {
		choice, err := q.choose(ctx, 0, newBudget())
		if q.Holds = choice != nil; err != nil {
			return err
		}
	}
	if len(q.waiting) == 0 {
		return nil
	}
	if err := q.askForEachKind(ctx); err != nil {
		return err
	}
	// For all pods that wait, or for as many as the group needs to start.
	least := 1
	if gang := q.group.Spec.SchedulingPolicy.Gang; gang != nil {
		least = min(len(q.waiting), max(1, int(gang.MinCount)-q.scheduled))
	}
	budget := newBudget()
	for _, count := range slices.Compact([]int{len(q.waiting), least}) {
		choice, err := q.choose(ctx, count, budget)
		if err != nil {
			return err
		}
		if choice != nil {
			q.Wanted, q.Reason = count, ""
			q.addChoice(choice)
			return nil
		}
		if q.Reason == "" {
			q.Reason = q.problem.Reason(q.nodes, q.refusals) + q.chooser.NearestMiss(ctx, q.problem, q.nodes, q.why, q.prepare, q.standing)
		}
	}
	return nil
}

// newBudget is what the scheduler has for a group.
func newBudget() *allocator.AttemptBudget {
	return allocator.NewAttemptBudget(allocator.DefaultCostBudget/10, allocator.DefaultStepBudget/10)
}

// prepare compiles what stands for the group.
func (q *question) prepare(ctx context.Context, p *nodeset.Problem) (*allocator.PreparedClaim, error) {
	return q.chooser.Prepare(ctx, p.Claim, nodeset.Classes{}, true)
}

// keyOf is the same for pods for which the answer is.
func keyOf(subject *clusterstate.Subject) string {
	spec := &subject.Pod.Spec
	parts := []any{spec.NodeSelector, spec.Affinity, spec.Tolerations, spec.SchedulingGates, spec.SchedulerName}
	for _, claim := range subject.Claims {
		if claim.Status.Allocation != nil {
			parts = append(parts, claim.Name)
		} else {
			parts = append(parts, claim.Spec)
		}
	}
	key, _ := json.Marshal(parts)
	return string(key)
}

// askForEachKind finds out which nodes can take a pod of each kind.
func (q *question) askForEachKind(ctx context.Context) error {
	known := map[string]int{}
	for _, subject := range q.waiting {
		kind, seen := known[keyOf(subject)]
		if !seen {
			kind = len(q.kinds)
			known[keyOf(subject)] = kind
			q.kinds = append(q.kinds, subject)
		}
		q.kindOf = append(q.kindOf, kind)
	}
	for i := range q.nodes {
		q.nodes[i].Takes, q.nodes[i].Sets = make([]bool, len(q.kinds)), make([][]nodeset.Set, len(q.kinds))
	}
	for kind, subject := range q.kinds {
		if err := q.ask(ctx, kind, subject); err != nil {
			return err
		}
	}
	running := 0
	for i := range q.nodes {
		n := &q.nodes[i]
		if q.constraint.PodsPerNode > 1 {
			// Any node that takes one of the pods will do.
			n.Takes = []bool{slices.Contains(n.Takes, true)}
		}
		switch able := slices.Contains(n.Takes, true); {
		case n.Placed:
			if able {
				q.seats += max(0, q.constraint.PodsPerNode-len(q.Running[running].Pods))
			}
			running++
		case able:
			q.Able++
		default:
			q.refuse(n.Name, q.why[i])
		}
	}
	slices.SortStableFunc(q.Refusals, func(a, b Refusal) int { return len(b.Nodes) - len(a.Nodes) })
	return nil
}

func (q *question) refuse(node, reason string) {
	at := slices.IndexFunc(q.Refusals, func(r Refusal) bool { return r.Reason == reason })
	if at < 0 {
		at = len(q.Refusals)
		q.Refusals = append(q.Refusals, Refusal{Reason: reason})
	}
	q.Refusals[at].Nodes = append(q.Refusals[at].Nodes, node)
}

// ask finds out which nodes can take a pod of one kind, and with what devices if the constraint reads that.
func (q *question) ask(ctx context.Context, kind int, subject *clusterstate.Subject) error {
	options := q.Options
	options.Why = false
	answer, err := fit.Run(ctx, q.state, subject, options)
	if err != nil {
		return err
	}
	for _, text := range answer.Refused {
		q.Refused = append(q.Refused, fmt.Sprintf("pod %s: %s", klog.KObj(subject.Pod), text))
	}
	q.Said = append(q.Said, answer.Said...)
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	of := q.Problem(q.state, subject)
	a, err := of.NewAllocator(ctx)
	if err != nil {
		return err
	}
	why := map[string]int{}
	q.refusals = append(q.refusals, why)
	for i := range answer.Nodes {
		n, reason := &q.nodes[i], answer.Nodes[i].Reason
		if n.Placed && q.reading.Devices() {
			continue
		}
		if reason == "" && q.reading.Devices() {
			n.Sets[kind], err = q.setsOn(ctx, a, subject, q.infos[i])
			switch {
			case errors.Is(err, structured.ErrFailedAllocationOnNode):
				reason = err.Error()
			case err != nil:
				return err
			}
		}
		if n.Takes[kind] = reason == ""; reason != "" {
			n.Elsewhere = reason == fit.Elsewhere
			why[reason]++
			q.why[i] = cmp.Or(q.why[i], reason)
		}
	}
	return ctx.Err()
}

// setsOn are the sets of devices that a pod may get on a node.
func (q *question) setsOn(ctx context.Context, a *allocator.Allocator, subject *clusterstate.Subject, node *corev1.Node) ([]nodeset.Set, error) {
	claims := q.state.PendingOn(subject, node)
	if len(claims) == 0 {
		set, err := q.reading.SetOf(q.has(subject), nil)
		return []nodeset.Set{set}, err
	}
	found, err := q.reading.SetsOn(ctx, a, node, claims, q.has(subject))
	for i := range found {
		q.bytes += found[i].Bytes()
	}
	if err == nil && q.bytes > nodeset.MaxSetBytes {
		return nil, fmt.Errorf("the sets of devices that the pods may get on all nodes take more than %d MiB: narrow the nodes with a nodeSelector, or the devices by selectors or constraints in the claims", nodeset.MaxSetBytes>>20)
	}
	return found, err
}

// maxMore is how many nodes are tried besides those that are needed if each takes as many pods as it may.
const maxMore = 16

// choose chooses the fewest nodes for as many of the pods that wait, besides those of the pods that run.
func (q *question) choose(ctx context.Context, count int, budget *allocator.AttemptBudget) (*nodeset.Choice, error) {
	perNode := q.constraint.PodsPerNode
	for more := 0; ; more++ {
		g := &nodeset.Group{Namespace: q.group.Namespace, Name: q.group.Name, Constraint: q.constraint, Placed: len(q.Running), ReadsDevices: q.reading.Devices()}
		if perNode > 1 && count > 0 {
			g.Kinds = []int{min(count, (max(0, count-q.seats)+perNode-1)/perNode+more)}
		} else {
			g.Kinds = make([]int, len(q.kinds))
			for _, kind := range q.kindOf[:count] {
				g.Kinds[kind]++
			}
		}
		var err error
		if q.problem, err = nodeset.NewProblem(g); err != nil {
			return nil, err
		}
		prepared, err := q.prepare(ctx, q.problem)
		if err != nil {
			return nil, err
		}
		choice, err := q.chooser.Choose(ctx, q.problem, prepared, q.nodes, allocator.WithAttemptBudget(budget))
		if choice != nil || err != nil || perNode == 1 || more >= maxMore || g.Size() >= min(g.Placed+count, v1alpha1.MaxNodeSetSize) {
			return choice, err
		}
	}
}

// addChoice adds the nodes that were chosen, in order.
func (q *question) addChoice(choice *nodeset.Choice) {
	for kind, nodes := range choice.Kinds {
		for at, i := range nodes {
			m := Member{Node: q.nodes[i].Name}
			if len(q.kinds) > 1 && q.constraint.PodsPerNode == 1 {
				m.Pods = []string{q.kinds[kind].Pod.Name}
			}
			if q.reading.Devices() {
				results := q.nodes[i].Sets[kind][choice.Sets[kind][at]].Results
				for j, claim := range q.state.PendingOn(q.kinds[kind], q.infos[i]) {
					m.Devices = append(m.Devices, fit.ClaimWith(claim, &results[j]).Devices...)
				}
			}
			q.Chosen = append(q.Chosen, m)
		}
	}
	slices.SortFunc(q.Chosen, func(a, b Member) int { return strings.Compare(a.Node, b.Node) })
}
