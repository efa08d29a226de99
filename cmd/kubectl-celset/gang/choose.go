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

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/internal/clusterstate"
)

// question holds the inputs and intermediate results for one report.
type question struct {
	fit.Options
	*Report
	search *nodeset.Search
	state  *clusterstate.State
	group  *schedulingapi.PodGroup
	slices []*resourceapi.ResourceSlice
	groupPods
	candidates
	// reads holds the attributes that the constraint reads. It is nil until compile has compiled the constraint.
	reads *nodeset.Reading
	hosts *hosts
	// choice has the chosen nodes, or is nil.
	choice *nodeset.Choice
	// bytes is the total memory of the possible device sets on all nodes. It is limited by nodeset.MaxSetBytes.
	bytes int
}

// groupPods holds the pods of the group, without pods that have succeeded or failed.
type groupPods struct {
	waiting, running []*clusterstate.Subject
	// scheduled is the number of pods that are assigned to a node, including pods that are being deleted.
	scheduled int
}

// candidates holds the nodes that the group may use. nodes and why have the order of Search.Nodes.
type candidates struct {
	nodes []*corev1.Node
	// why holds, for each node, the first reason why a pod of the group does not fit there, or "".
	why      []string
	refusals nodeset.Refusals
	layout   *device.Layout
}

// answer computes the report. An error is one that would end the scheduling of the group.
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
	q.search.Options, _ = nodeset.Limits()
	if len(q.Running) > 0 {
		var err error
		if q.Holds, err = q.search.Holds(ctx); err != nil {
			return err
		}
	}
	if len(q.waiting) == 0 {
		return nil
	}
	if err := q.askForEachKind(ctx); err != nil {
		return err
	}
	q.search.Least = 1
	if gang := q.group.Spec.SchedulingPolicy.Gang; gang != nil {
		q.search.Least = min(len(q.waiting), max(1, int(gang.MinCount)-q.scheduled))
	}
	choice, err := q.search.Choose(ctx)
	switch {
	case err != nil:
		return err
	case choice != nil:
		q.choice, q.Wanted = choice, choice.Pods
		return q.addChoice(ctx, choice)
	}
	q.Reason = q.search.Reason(q.refusals) + q.search.NearestMiss(ctx, q.why, q.runningPods)
	return nil
}

// prepare compiles the claim that the search uses to represent the group's constraint.
func (q *question) prepare(ctx context.Context, p *nodeset.Problem) (*allocator.PreparedClaim, error) {
	return q.search.Prepare(ctx, p.Claim, nodeset.Classes{}, true)
}

// claimKeys returns a key for each claim of a pod. Claims with the same key fit on the same nodes.
func claimKeys(subject *clusterstate.Subject) (keys []string, err error) {
	for _, claim := range subject.Claims {
		if claim.Status.Allocation != nil {
			keys = append(keys, claim.Name)
			continue
		}
		raw, err := json.Marshal(claim.Spec)
		if err != nil {
			return nil, err
		}
		keys = append(keys, string(raw))
	}
	return keys, nil
}

// askForEachKind groups equivalent pods into kinds, and finds the nodes that can take a pod of each kind.
func (q *question) askForEachKind(ctx context.Context) error {
	q.hosts = newHosts(q)
	q.search.Hosts = q.hosts
	known := map[[32]byte]int{}
	for _, subject := range q.waiting {
		claims, err := claimKeys(subject)
		if err != nil {
			return err
		}
		key, err := q.reads.KindOf(subject.Pod, append(claims, subject.Pod.Spec.SchedulerName))
		if err != nil {
			return err
		}
		kind, seen := known[key]
		if !seen {
			kind = len(q.search.Kinds)
			known[key] = kind
			q.search.Kinds = append(q.search.Kinds, 0)
			q.search.Pods = append(q.search.Pods, q.reads.OfPod(subject.Pod))
			q.hosts.kinds = append(q.hosts.kinds, nil)
		}
		q.search.Kinds[kind]++
		q.hosts.kinds[kind] = append(q.hosts.kinds[kind], subject)
	}
	q.search.Waiting = make([][]*corev1.Pod, len(q.hosts.kinds))
	for kind, subjects := range q.hosts.kinds {
		for _, subject := range subjects {
			q.search.Waiting[kind] = append(q.search.Waiting[kind], subject.Pod)
		}
		slices.SortFunc(q.search.Waiting[kind], nodeset.ComparePods)
	}
	for i := range q.search.Nodes {
		n, kinds := &q.search.Nodes[i], len(q.search.Kinds)
		n.Takes, n.Elsewhere, n.Sets = make([]bool, kinds), make([]bool, kinds), make([][]nodeset.Set, kinds)
	}
	for kind := range q.search.Kinds {
		if err := q.ask(ctx, kind); err != nil {
			return err
		}
	}
	for i := range q.search.Nodes {
		switch n := &q.search.Nodes[i]; {
		case n.Placed:
		case slices.Contains(n.Takes, true):
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

// ask finds the nodes that can take a pod of one kind. If the constraint reads devices, ask also finds the device sets that the
// pod could get on each node.
func (q *question) ask(ctx context.Context, kind int) error {
	subject, options := q.hosts.kinds[kind][0], q.Options
	options.Why = false
	answer, err := fit.Run(ctx, q.state, subject, options)
	if err != nil {
		return err
	}
	for _, text := range answer.Refused {
		q.Refused = append(q.Refused, fmt.Sprintf("pod %s: %s", klog.KObj(subject.Pod), text))
	}
	for _, text := range answer.NotChecked {
		if !slices.Contains(q.NotChecked, text) {
			q.NotChecked = append(q.NotChecked, text)
		}
	}
	q.Quoted = append(q.Quoted, answer.Quoted...)
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	a, err := q.allocator(ctx, subject)
	if err != nil {
		return err
	}
	why := map[string]int{}
	q.refusals = append(q.refusals, why)
	for i := range answer.Nodes {
		n, reason := &q.search.Nodes[i], answer.Nodes[i].Reason
		if n.Placed && q.search.ReadsDevices {
			continue
		}
		if reason == "" && q.search.ReadsDevices {
			n.Sets[kind], err = q.setsOn(ctx, a, subject, q.nodes[i])
			switch {
			case errors.Is(err, structured.ErrFailedAllocationOnNode):
				reason = err.Error()
			case err != nil:
				return err
			}
		}
		if n.Takes[kind] = reason == ""; reason != "" {
			n.Elsewhere[kind] = reason == fit.Elsewhere
			why[reason]++
			q.why[i] = cmp.Or(q.why[i], reason)
		}
	}
	return ctx.Err()
}

// allocator returns an allocator for the claims of a pod.
func (q *question) allocator(ctx context.Context, subject *clusterstate.Subject) (*allocator.Allocator, error) {
	problem := q.Problem(q.state, subject)
	return problem.NewAllocator(ctx)
}

// setsOn returns the sets of devices that the pod could get on a node.
func (q *question) setsOn(ctx context.Context, a *allocator.Allocator, subject *clusterstate.Subject, node *corev1.Node) ([]nodeset.Set, error) {
	claims := q.state.PendingOn(subject, node)
	if len(claims) == 0 {
		set, err := q.reads.SetOf(q.has(subject), nil)
		return []nodeset.Set{set}, err
	}
	found, err := q.reads.SetsOn(ctx, a, node, claims, q.has(subject))
	for i := range found {
		q.bytes += found[i].Bytes()
	}
	if err == nil && q.bytes > nodeset.MaxSetBytes {
		return nil, fmt.Errorf("the sets of devices that the pods may get on all nodes take more than %d MiB: narrow the nodes with a nodeSelector, or the devices by selectors or constraints in the claims", nodeset.MaxSetBytes>>20)
	}
	return found, err
}

// addChoice adds the chosen nodes to the report. It also adds the names of each node's pods, unless all pods are equivalent and
// each node gets one.
func (q *question) addChoice(ctx context.Context, choice *nodeset.Choice) error {
	names := make([][]string, len(choice.Members))
	for kind, members := range q.search.Seats(ctx, choice) {
		for i, at := range members {
			names[at] = append(names[at], q.search.Waiting[kind][i].Name)
		}
	}
	for i, m := range choice.Members {
		if m.Load.Pods() == 0 {
			continue
		}
		member := Member{Node: q.search.Nodes[m.Node].Name}
		if len(q.search.Kinds) > 1 || q.search.Constraint.PodsPerNode > 1 {
			member.Pods = names[i]
		}
		if q.search.ReadsDevices {
			kind := slices.Index(m.Load, 1)
			results := q.search.Nodes[m.Node].Sets[kind][m.Set].Results
			for i, claim := range q.state.PendingOn(q.hosts.kinds[kind][0], q.nodes[m.Node]) {
				member.Devices = append(member.Devices, explain.ClaimWith(claim, &results[i]).Devices...)
			}
		}
		q.Chosen = append(q.Chosen, member)
	}
	return ctx.Err()
}
