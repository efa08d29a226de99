// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/placements"
	"github.com/celset/celset/internal/clusterstate"
)

// maxSubjects is the maximum number of subjects that one question answers.
const maxSubjects = 32

// The severities of problems.
const (
	severityError   = "error"
	severityWarning = "warning"
)

// trial holds the documents of a question [Try].
type trial struct {
	*Answers
	question TryQuestion
	problems []Problem
	// objects holds the objects of the documents. hub holds the documents for Placements.
	objects *clusterstate.Objects
	hub     []clusterstate.Document
	places  map[objectKey]*place
}

// objectKey identifies an object of the documents.
type objectKey struct{ kind, namespace, name string }

// try answers the question [Try].
func (a *Answers) try(ctx context.Context, question TryQuestion) (*TryAnswer, error) {
	if len(question.Documents) > MaxDocuments {
		return nil, fmt.Errorf("documents: %d bytes, but the limit is %d: remove objects that are not needed", len(question.Documents), MaxDocuments)
	}
	t := &trial{Answers: a, question: question, problems: []Problem{}, objects: &clusterstate.Objects{}, places: map[objectKey]*place{}}
	if err := t.decode(ctx); err != nil {
		return nil, err
	}
	state, err := t.state(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.check(ctx, state); err != nil {
		return nil, err
	}
	answer := &TryAnswer{Subjects: []SubjectAnswer{}}
	err = t.answerSubjects(ctx, state, answer)
	if err == nil {
		err = t.answerPlacements(ctx, answer)
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && len(answer.Subjects) > 0:
		t.problem(severityWarning, 0, 0, fmt.Sprintf("%v: some objects of the documents have no answer", err))
	case err != nil:
		return nil, err
	}
	// Problems without a position come last.
	slices.SortStableFunc(t.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(uint(a.Line)-1, uint(b.Line)-1), cmp.Compare(a.Column, b.Column))
	})
	answer.Problems = t.problems
	return answer, nil
}

// decode decodes the documents, and records mistakes as problems. It fails only if the time is over.
func (t *trial) decode(ctx context.Context) error {
	documents, err := clusterstate.Decode("documents", []byte(t.question.Documents))
	documents, ofJobs := clusterstate.WithPods(documents)
	for _, mistake := range slices.Concat(mistakes(err), mistakes(ofJobs)) {
		t.problem(severityError, mistake.Line, 1, mistake.Err.Error())
	}
	for _, document := range documents {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at := &place{document: document.Position}
		object := document.Object
		if placements.Uses(object.GroupVersionKind()) {
			t.hub = append(t.hub, document)
			t.places[objectKey{object.GetKind(), cmp.Or(object.GetNamespace(), t.Namespace), object.GetName()}] = at
			continue
		}
		ignored, warned := len(t.objects.Ignored), len(t.objects.Warnings)
		if err := t.objects.Add(document, t.Namespace); err != nil {
			t.undecodable(at, err)
			continue
		}
		switch {
		case len(t.objects.Warnings) > warned:
			t.problemAt(severityWarning, at, "kind", t.objects.Warnings[warned])
		case len(t.objects.Ignored) > ignored:
			t.problemAt(severityWarning, at, "kind", fmt.Sprintf("%s %s is ignored: the kind has no effect on devices", object.GetKind(), object.GetName()))
		}
		t.objects.Warnings, t.objects.Ignored = t.objects.Warnings[:warned], t.objects.Ignored[:ignored]
		for _, namespace := range []string{"", cmp.Or(object.GetNamespace(), t.Namespace)} {
			key := objectKey{object.GetKind(), namespace, object.GetName()}
			if t.places[key] != nil && namespace != "" {
				t.problemAt(severityWarning, at, "metadata.name", fmt.Sprintf("the documents have %s %s several times", object.GetKind(), object.GetName()))
			}
			t.places[key] = at
		}
	}
	return nil
}

// mistakes returns the errors of [clusterstate.Decode].
func mistakes(err error) (all []*clusterstate.SyntaxError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			if mistake, ok := errors.AsType[*clusterstate.SyntaxError](one); ok {
				all = append(all, mistake)
			}
		}
	}
	return all
}

// maxProblems is the maximum number of problems in an answer.
const maxProblems = 200

func (t *trial) problem(severity string, line, column int, message string) {
	if len(t.problems) < maxProblems {
		t.problems = append(t.problems, Problem{Severity: severity, Message: message, Line: line, Column: column})
	}
}

// problemAt records a problem at a field of a document. The position is found only if the problem is recorded.
func (t *trial) problemAt(severity string, at *place, field, message string) {
	if len(t.problems) < maxProblems {
		line, column := at.of(field, 0, 0)
		t.problem(severity, line, column, message)
	}
}

// state returns the objects of the source or of the machine, together with the objects of the documents. An object of the
// documents replaces an object of the source with the same name.
func (t *trial) state(ctx context.Context) (*clusterstate.State, error) {
	var below *clusterstate.Objects
	if t.question.Machine != "" {
		var err error
		if below, err = machineObjects(ctx, t.question.Machine, t.question.Nodes, t.question.InUse); err != nil {
			return nil, err
		}
	} else {
		current, err := t.current(ctx)
		if err != nil {
			return nil, err
		}
		below = &clusterstate.Objects{}
		*below = *current.Objects
	}
	t.objects.LimitQuantities()
	both := below.Overlay(t.objects)
	if t.question.Machine != "" {
		if len(t.objects.Nodes)+len(t.objects.Slices) > 0 {
			t.problem(severityWarning, 0, 0, "the nodes and ResourceSlices of the documents are ignored, because a machine is chosen: choose no machine to use them")
		}
		both.Nodes, both.Slices = below.Nodes, below.Slices
	}
	if err := both.Enrich(ctx); err != nil {
		return nil, err
	}
	for _, warning := range t.objects.Warnings {
		t.problem(severityWarning, 0, 0, warning)
	}
	return clusterstate.New(both), nil
}

// answerSubjects explains each group and pod of the documents, and each claim and template that no pod of the documents uses.
func (t *trial) answerSubjects(ctx context.Context, state *clusterstate.State, answer *TryAnswer) error {
	asked := state.Asked()
	used, usedTemplates := map[*resourceapi.ResourceClaim]bool{}, map[objectKey]bool{}
	left := 0
	add := func(of func() (*SubjectAnswer, error), at *place) error {
		if len(answer.Subjects) == maxSubjects {
			left++
			return nil
		}
		one, err := of()
		if err == nil {
			// If the time is over, the text of this answer says that it is incomplete.
			answer.Subjects = append(answer.Subjects, *one)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			t.problemAt(severityError, at, "", err.Error())
		}
		return nil
	}
	for _, group := range asked.Groups {
		if _, refers := v1alpha1.NodeSetReference(group); !refers {
			continue // the scheduler places such a group without celset, and its pods have answers of their own
		}
		if err := add(func() (*SubjectAnswer, error) { return t.group(ctx, state, group) }, t.places[objectKey{"PodGroup", group.Namespace, group.Name}]); err != nil {
			return err
		}
	}
	for _, pod := range asked.Pods {
		subject, err := state.SubjectOf(pod)
		if err == nil {
			for _, claim := range subject.Claims {
				used[claim] = true
			}
			for _, entry := range pod.Spec.ResourceClaims {
				usedTemplates[objectKey{"ResourceClaimTemplate", pod.Namespace, ptr.Deref(entry.ResourceClaimTemplateName, "")}] = true
			}
			if len(subject.Claims) == 0 && subject.Missing == nil {
				continue
			}
		}
		if err := add(func() (*SubjectAnswer, error) { return t.subject(ctx, state, subject, err) }, t.places[objectKey{"Pod", pod.Namespace, pod.Name}]); err != nil {
			return err
		}
	}
	for _, claim := range asked.Claims {
		if used[claim] || claim.Status.Allocation != nil {
			continue
		}
		named := clusterstate.ClaimKind + "/" + claim.Name
		if err := add(func() (*SubjectAnswer, error) { return t.named(ctx, state, named, claim.Namespace) }, t.places[objectKey{"ResourceClaim", claim.Namespace, claim.Name}]); err != nil {
			return err
		}
	}
	for _, template := range asked.Templates {
		key := objectKey{"ResourceClaimTemplate", template.Namespace, template.Name}
		if usedTemplates[key] {
			continue
		}
		named := clusterstate.TemplateKind + "/" + template.Name
		if err := add(func() (*SubjectAnswer, error) { return t.named(ctx, state, named, template.Namespace) }, t.places[key]); err != nil {
			return err
		}
	}
	if left > 0 {
		t.problem(severityWarning, 0, 0, fmt.Sprintf("%d more pods, groups, claims and templates have no answer, because the limit is %d", left, maxSubjects))
	}
	return nil
}

// named answers the claim or template that an argument names.
func (t *trial) named(ctx context.Context, state *clusterstate.State, argument, namespace string) (*SubjectAnswer, error) {
	subject, err := state.Subject(argument, namespace)
	return t.subject(ctx, state, subject, err)
}

func (t *trial) subject(ctx context.Context, state *clusterstate.State, subject *clusterstate.Subject, err error) (*SubjectAnswer, error) {
	if err != nil {
		return nil, err
	}
	q := &subjectQuestion{Answers: t.Answers, state: state, subject: subject, name: nameOf(subject), node: t.question.Node}
	return q.answer(ctx)
}

// answerPlacements decides the Placements of the documents.
func (t *trial) answerPlacements(ctx context.Context, answer *TryAnswer) error {
	valid := slices.DeleteFunc(t.hub, func(document clusterstate.Document) bool {
		_, err := placements.FromDocuments([]clusterstate.Document{document}, t.Namespace)
		if err != nil {
			object := document.Object
			t.undecodable(t.places[objectKey{object.GetKind(), cmp.Or(object.GetNamespace(), t.Namespace), object.GetName()}], err)
		}
		return err != nil
	})
	hub, err := placements.FromDocuments(valid, t.Namespace)
	if err != nil {
		return err
	}
	objects := hub.Placements()
	current, err := t.current(ctx)
	if err != nil {
		return err
	}
	if current.Hub != nil {
		hub = current.Hub.Overlay(hub)
	}
	if len(objects) > maxSubjects {
		t.problem(severityWarning, 0, 0, fmt.Sprintf("%d more Placements have no answer, because the limit is %d", len(objects)-maxSubjects, maxSubjects))
		objects = objects[:maxSubjects]
	}
	verdicts, err := placements.Check(ctx, objects)
	if err != nil {
		return err
	}
	for i, verdict := range verdicts {
		at := t.places[objectKey{"Placement", objects[i].Namespace, objects[i].Name}]
		for _, text := range verdict.Errors {
			t.finding(severityError, at, "", 0, 0, text)
		}
		for _, text := range verdict.Warnings {
			t.finding(severityWarning, at, "", 0, 0, text)
		}
		one, err := t.decided(ctx, hub, objects[i])
		if err != nil {
			return err
		}
		answer.Subjects = append(answer.Subjects, *one)
	}
	return nil
}
