// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"fmt"
	"strings"
	"time"

	schedulingapi "k8s.io/api/scheduling/v1beta1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cmd/kubectl-celset/fit"
	"github.com/celset/celset/cmd/kubectl-celset/gang"
	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/report"
)

// explain answers the question [Explain].
func (a *Answers) explain(ctx context.Context, question ExplainQuestion) (*SubjectAnswer, error) {
	current, err := a.current(ctx)
	if err != nil {
		return nil, err
	}
	state := current.state
	kind, name, err := clusterstate.Split(question.Subject, clusterstate.PodKind, clusterstate.ClaimKind, clusterstate.TemplateKind, clusterstate.GroupKind, clusterstate.PlacementKind)
	if err != nil {
		return nil, err
	}
	if question.Node != "" {
		if _, err := state.ChosenNodes([]string{question.Node}); err != nil {
			return nil, err
		}
	}
	switch kind {
	case clusterstate.GroupKind:
		group := state.Group(question.Namespace, name)
		if group == nil {
			return nil, fmt.Errorf("there is no PodGroup %q in namespace %q%s", name, question.Namespace, state.NearGroup(question.Namespace, name))
		}
		return a.group(ctx, state, group)
	case clusterstate.PlacementKind:
		if current.Hub == nil {
			return nil, fmt.Errorf("there is no Placement %q in namespace %q, because no hub was read", name, question.Namespace)
		}
		object, err := current.Hub.Placement(name, question.Namespace)
		if err != nil {
			return nil, err
		}
		return a.decided(ctx, current.Hub, object)
	}
	subject, err := state.Subject(question.Subject, question.Namespace)
	if err != nil {
		return nil, err
	}
	if len(subject.Claims) == 0 && subject.Missing == nil {
		return nil, fmt.Errorf("%s has no claims, and no extended resources of a DeviceClass", subject)
	}
	q := &subjectQuestion{Answers: a, state: state, subject: subject, name: nameOf(subject), node: question.Node}
	return q.answer(ctx)
}

// nameOf returns the kind, namespace and name of a subject.
func nameOf(subject *clusterstate.Subject) string {
	switch {
	case subject.Pod != nil:
		return clusterstate.PodKind + " " + subject.Pod.Namespace + "/" + subject.Pod.Name
	case len(subject.Made) > 0:
		return clusterstate.TemplateKind + " " + subject.Made[0].Namespace + "/" + subject.Made[0].Name
	default:
		return clusterstate.ClaimKind + " " + subject.Claims[0].Namespace + "/" + subject.Claims[0].Name
	}
}

// group explains a PodGroup.
func (a *Answers) group(ctx context.Context, state *clusterstate.State, group *schedulingapi.PodGroup) (*SubjectAnswer, error) {
	subject := gang.SubjectOf(state, group)
	options := a.fitOptions(ctx, subject.Pod)
	options.OfGroup = true
	report, err := gang.Run(ctx, state, group, options)
	if err != nil {
		return nil, err
	}
	report.Refused = append(report.Refused, fit.GroupRefusals(state, group)...)
	a.addServed(ctx, &report.Scheduling, state, subject)
	var text strings.Builder
	if err := report.Print(&text); err != nil {
		return nil, err
	}
	result := &SubjectAnswer{
		Subject: clusterstate.GroupKind + " " + group.Namespace + "/" + group.Name, Fits: report.Positive(), Verdict: verdictOf(report.Positive(), report.Error, report.Incomplete),
		Summary: groupSummary(report), Text: text.String(),
	}
	for _, member := range report.Chosen {
		verdict := NodeVerdict{Name: member.Node, Fits: true}
		for _, device := range member.Devices {
			verdict.Devices = append(verdict.Devices, device.Driver+"/"+device.Pool+"/"+device.Device)
		}
		result.Nodes = append(result.Nodes, verdict)
	}
	for _, refusal := range report.Refusals {
		for _, node := range refusal.Nodes {
			result.Nodes = append(result.Nodes, NodeVerdict{Name: node, Reason: firstLine(refusal.Reason)})
		}
	}
	if omitted := len(result.Nodes) - MaxNodes; omitted > 0 {
		result.Nodes, result.Omitted = result.Nodes[:MaxNodes], omitted
	}
	if report.HasPicture() {
		result.Picture, err = pictureOf(report.Picture(), "", groupCaption(report))
	}
	return result, err
}

func groupSummary(report *gang.Report) string {
	switch {
	case report.Error != "":
		return firstLine(report.Error)
	case report.Incomplete != "":
		return report.Incomplete
	case len(report.Refused) > 0:
		return firstLine(report.Refused[0])
	case report.Reason != "":
		// The picture and the list of nodes show the nearest miss.
		reason, _, _ := strings.Cut(firstLine(report.Reason), "; nearest miss: ")
		return reason
	case report.Wanted > 0:
		return fmt.Sprintf("%d of %d waiting pods, on %d nodes.", report.Wanted, report.Waiting, len(report.Chosen))
	case report.Holds:
		return "All pods run, and their nodes satisfy the constraint."
	default:
		return "No pods are waiting."
	}
}

func groupCaption(report *gang.Report) string {
	switch {
	case len(report.Chosen) > 0:
		return "nodes for " + report.Group
	case len(report.Running) > 0:
		return "nodes with pods of " + report.Group
	default:
		return "no set of nodes satisfies the constraint of " + report.Group
	}
}

// placementTime is the time limit for the expressions of a Placement.
const placementTime = 5 * time.Second

// decide makes the decision on a Placement.
func (a *Answers) decide(ctx context.Context, hub *placements.Hub, object *clusterv1beta1.Placement, now time.Time) (*placements.Answer, error) {
	limited, cancel := placement.WithDeadline(ctx, placementTime, placementTime)
	defer cancel()
	return hub.Decide(limited, object, now, placements.Options{Why: true})
}

// decided explains a Placement.
func (a *Answers) decided(ctx context.Context, hub *placements.Hub, object *clusterv1beta1.Placement) (*SubjectAnswer, error) {
	answer, err := a.decide(ctx, hub, object, time.Now())
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := answer.Print(&text); err != nil {
		return nil, err
	}
	summary := fmt.Sprintf("%d of %d clusters selected.", len(answer.Selected), answer.Available.Clusters)
	switch {
	case answer.KeepsFormer:
		summary = "No decision can be made: the previous decision stays in effect."
	case answer.Undecided:
		summary = "No decision can be made, and no cluster is selected."
	}
	return &SubjectAnswer{
		Subject: clusterstate.PlacementKind + " " + object.Namespace + "/" + object.Name, Fits: answer.Positive(), Verdict: verdictOf(answer.Positive(), "", ""), Summary: summary, Text: text.String(),
		Placement: answer.Report,
	}, nil
}

// placement answers the question [Placement].
func (a *Answers) placement(ctx context.Context, question PlacementQuestion) (any, error) {
	current, err := a.current(ctx)
	if err != nil {
		return nil, err
	}
	if current.Hub == nil {
		return nil, fmt.Errorf("there is no Placement %q in namespace %q, because no hub was read", question.Name, question.Namespace)
	}
	if question.Name == "" {
		return nil, fmt.Errorf("name: must not be empty")
	}
	object, err := current.Hub.Placement(question.Name, question.Namespace)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if question.Now != "" {
		if now, err = time.Parse(time.RFC3339, question.Now); err != nil || now.Year() < 1970 {
			return nil, fmt.Errorf("now: %q: must be a time after 1969 in RFC 3339, such as 2026-08-01T12:00:00Z", question.Now)
		}
	}
	if without := question.Without; without != nil {
		changed, ok := report.WithoutPredicate(object, *without)
		if !ok {
			return nil, fmt.Errorf("without: %d is not the index of a predicate: the Placement has %d predicates, and the first index is 0", *without, len(object.Spec.Predicates))
		}
		object = changed
	}
	answer, err := a.decide(ctx, current.Hub, object, now.UTC())
	if err != nil {
		return nil, err
	}
	return answer.Report, nil
}
