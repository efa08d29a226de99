// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gang reports on which nodes the pods of a PodGroup with a node set constraint would run, or why no nodes fit. Package
// fit finds the nodes for each kind of pods. Package nodeset chooses a set of nodes as the scheduler does.
//
//	report, err := gang.Run(ctx, state, state.Group("default", "train"), options)
//	report.Print(os.Stdout)
//	report.Picture().Text(os.Stdout, color)
package gang

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/allocator/nodeset"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/draw"
	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/cmd/kubectl-celset/output"
	"github.com/celset/celset/internal/clusterstate"
)

// Report says on which nodes the pods of a group would run, or why no nodes fit.
type Report struct {
	output.Meta
	Group string `json:"group"`
	fit.Scheduling
	// Constraint is the name of the constraint that the group refers to. Defined names the object and field that define it.
	Constraint string `json:"constraint"`
	Defined    string `json:"defined,omitempty"`
	Placed
	Pending
	Outcome

	question *question
}

// Placed describes the pods of the group that are assigned to nodes.
type Placed struct {
	// Running lists the nodes with pods of the group. Holds is set if these nodes alone satisfy the constraint.
	Running []Member `json:"running,omitempty"`
	Holds   bool     `json:"holds,omitempty"`
}

// Pending describes the pods of the group that are not assigned to a node.
type Pending struct {
	// Waiting is the number of pending pods. Able is the number of nodes where at least one of them fits. Refusals gives the
	// reasons for the other nodes.
	Waiting  int       `json:"waiting"`
	Able     int       `json:"able"`
	Refusals []Refusal `json:"refusals,omitempty"`
}

// Outcome lists the nodes that the scheduler would choose, or gives the reason why it would choose none.
type Outcome struct {
	// Chosen lists the nodes that the scheduler would choose. Wanted is the number of pending pods that would run there.
	Wanted int      `json:"wanted,omitempty"`
	Chosen []Member `json:"chosen,omitempty"`
	// Reason says why no set of nodes fits. Error would end the scheduling of the group. Incomplete is set if the time limit
	// was exceeded.
	Reason     string `json:"reason,omitempty"`
	Error      string `json:"error,omitempty"`
	Incomplete string `json:"incomplete,omitempty"`
}

// Member is a node of the chosen set, or a node that already runs pods of the group.
type Member struct {
	Node string `json:"node"`
	// Pods lists the names of the group's pods on the node. It is empty if all pending pods are equivalent and each node gets
	// one of them.
	Pods []string `json:"pods,omitempty"`
	// Devices lists the devices that a pod would get on the node. It is empty unless the constraint reads devices.
	Devices []explain.Device `json:"devices,omitempty"`
}

// Refusal is a reason why no pod of the group fits on the nodes.
type Refusal struct {
	Reason string   `json:"reason"`
	Nodes  []string `json:"nodes"`
}

// Positive reports whether nodes were found for the pending pods. Without pending pods, it reports whether the nodes of the
// running pods satisfy the constraint.
func (r *Report) Positive() bool {
	return r.Error == "" && r.Reason == "" && len(r.Refused) == 0 && (r.Waiting > 0 || r.Holds)
}

// Run returns the report for a group. It returns an error if the group has no node set constraint or options.Nodes names an
// unknown node. All later errors are in the report.
func Run(ctx context.Context, state *clusterstate.State, group *schedulingapi.PodGroup, options fit.Options) (*Report, error) {
	name, ok := v1alpha1.NodeSetReference(group)
	if !ok {
		return nil, fmt.Errorf("PodGroup %s has no node set constraint: set spec.schedulingConstraints.topology[0].key to %s/NAME", klog.KObj(group), v1alpha1.AttributeDomain)
	}
	options.Nodes = slices.Compact(slices.Sorted(slices.Values(options.Nodes)))
	nodes, err := state.ChosenNodes(options.Nodes)
	if err != nil {
		return nil, err
	}
	chooser, err := nodeset.NewChooser(nil)
	if err != nil {
		return nil, err
	}
	r := &Report{Meta: output.NewMeta(output.GroupExplanation), Group: "PodGroup " + klog.KObj(group).String(), Constraint: v1alpha1.AttributeDomain + "/" + name}
	r.NotChecked = []string{"whether the feature gate " + v1alpha1.NodeSetFeatureGate + " of the scheduler is on"}
	for _, c := range group.Status.Conditions {
		if c.Status == metav1.ConditionFalse {
			r.Quoted = append(r.Quoted, fmt.Sprintf("%s is False (%s): %s", c.Type, c.Reason, c.Message))
		}
	}
	q := &question{Options: options, Report: r, search: &nodeset.Search{Chooser: chooser}, state: state, group: group, candidates: candidates{nodes: nodes}, slices: state.Slices(options.Features.DeviceTaints)}
	q.search.Compiled = q.prepare
	r.question = q
	err = q.answer(ctx, name)
	switch {
	case ctx.Err() != nil:
		r.Incomplete = context.Cause(ctx).Error()
	case err != nil:
		r.Error = err.Error()
	}
	return r, nil
}

// SubjectOf returns a pod of the group, preferably a pod without a node, or a subject without a pod. The facts about the scheduler of
// the group come from this pod.
func SubjectOf(state *clusterstate.State, group *schedulingapi.PodGroup) *clusterstate.Subject {
	subject := &clusterstate.Subject{}
	for _, pod := range state.Pods {
		if state.GroupOf(pod) == group && (subject.Pod == nil || pod.Spec.NodeName == "") {
			subject.Pod = pod
		}
	}
	return subject
}

// Print writes the report as text. It names the nodes where no pod fits only if the option Why is set.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, "  "+format+"\n", arguments...) }
	fmt.Fprintln(&b, r.Group)
	r.Scheduling.Print(&b)
	if r.Defined != "" {
		line("constraint %s: %s", r.Constraint, r.Defined)
	}
	switch {
	case len(r.Running) > 0 && r.Holds:
		line("pods run on %s, which satisfy the constraint: %s", counted(r.Running), list(r.Running))
	case len(r.Running) > 0:
		line("pods run on %s, which do not satisfy the constraint by themselves: %s", counted(r.Running), list(r.Running))
	}
	if r.Waiting > 0 {
		line("waiting pods: %d", r.Waiting)
	}
	if r.Able > 0 {
		line("nodes that can take a pod: %d", r.Able)
	}
	for _, refusal := range r.Refusals {
		line("%s can't: %s", counted(refusal.Nodes), refusal.Reason)
		if r.question.Why {
			line("  %s", fit.Names(refusal.Nodes))
		}
	}
	if r.Wanted > 0 {
		line("yes, for %d of %d: %s", r.Wanted, r.Waiting, list(r.Chosen))
	}
	for _, m := range r.Chosen {
		if len(m.Devices) > 0 {
			line("  node %s: %s", m.Node, explain.Claim{Devices: m.Devices}.DevicesByRequest())
		}
	}
	for _, end := range [][2]string{{"no", r.Reason}, {"error", r.Error}, {"incomplete", r.Incomplete}} {
		if end[1] != "" {
			line("%s: %s", end[0], strings.ReplaceAll(strings.TrimSpace(end[1]), "\n", "\n    "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func counted[T any](nodes []T) string {
	if len(nodes) == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", len(nodes))
}

// list returns the names of the nodes, each with the names of its pods if the member lists pods.
func list(members []Member) string {
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = m.Node
		if len(m.Pods) > 0 {
			texts[i] += " (" + strings.Join(m.Pods, ", ") + ")"
		}
	}
	return strings.Join(texts, ", ")
}

// HasPicture reports whether the nodes have been arranged, so that they can be drawn. An early error prevents that.
func (r *Report) HasPicture() bool {
	q := r.question
	return q.layout != nil && len(q.search.Nodes) > 0 && len(q.why) == len(q.search.Nodes)
}

// Picture draws all nodes, with the nodes of the set highlighted. HasPicture must be true.
func (r *Report) Picture() *draw.Picture {
	q := r.question
	nodes := make([]draw.Node, len(q.search.Nodes))
	for i := range nodes {
		n := &q.search.Nodes[i]
		isMember := slices.ContainsFunc(slices.Concat(r.Running, r.Chosen), func(m Member) bool { return m.Node == n.Name })
		nodes[i] = draw.Node{Name: n.Name, At: q.layout.At[i], Chosen: isMember, Unusable: q.why[i] != "" && !slices.Contains(n.Takes, true)}
		if nodes[i].At == nil {
			nodes[i].Group = q.layout.Groups[i]
		}
	}
	return draw.Nodes(r.Group, nodes, q.layout.Circles)
}
