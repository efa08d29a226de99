// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/test/internal/env"
)

// TestMistakes checks that a mistake in a constraint is described in the pods' conditions, in the group's condition and in an
// event.
func TestMistakes(t *testing.T) {
	l := newNodes(t, "mistakes", 2, rack(2))
	for name, test := range map[string]struct{ expression, more, reason, text string }{
		"syntax":  {"nodes.all(n, n.labels.rack = 'a')", "", wellknown.ReasonInvalidExpression, "Syntax error"},
		"type":    {"nodes.size()", "", wellknown.ReasonInvalidExpression, "the expression must return bool, but returns int"},
		"missing": {"nodes.all(n, n.labels.leaf == 'a')", "", wellknown.ReasonEvaluationFailed, "no such key: leaf"},
		"devices": {"devices.size() == 2", "", wellknown.ReasonInvalidExpression, "undeclared reference to 'devices'"},
		"field":   {"true", "podsPerNodes: 2", wellknown.ReasonInvalidConstraint, "podsPerNodes"},
		"pod":     {"nodes.all(n, n.pod.labels.role == 'a')", "podsPerNode: 2", wellknown.ReasonInvalidConstraint, onlyPod},
	} {
		l.requireRefused(t, l.group(t, name, test.expression, test.more, 2, 2)[0], test.text)
		l.requireMisconfigured(t, name, "True "+test.reason, test.text)
		env.Until(t, "an event of the group says so", func(ctx context.Context) (bool, error) {
			events, err := l.Client().EventsV1().Events(l.Namespace).List(ctx, metav1.ListOptions{})
			return err == nil && slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Kind == "PodGroup" && e.Regarding.Name == name && e.Reason == test.reason &&
					e.Action == wellknown.ActionScheduling && strings.Contains(e.Note, test.text)
			}), err
		})
	}
}

// onlyPod is the message of the scheduler and of kubectl.
const onlyPod = "podsPerNode is 2, but the expression reads n.pod, the only pod of a node: read n.pods instead, or remove podsPerNode"

// TestMistakeIsCorrected corrects a mistake in a constraint. The group's condition must become False, and the pods must run.
func TestMistakeIsCorrected(t *testing.T) {
	l := newNodes(t, "corrected", 2, rack(2))
	members := l.group(t, "corrected", "nodes.size()", "", 2, 2)
	l.requireMisconfigured(t, "corrected", "True "+wellknown.ReasonInvalidExpression)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		v1alpha1.NodeSetAnnotation: "apiVersion: celset.dev/v1alpha1\nkind: CELNodeSetConstraint\nname: nodes_of_group\nexpression: nodes.size() == 2\n",
	}}})
	require.NoError(t, err)
	_, err = l.Client().SchedulingV1beta1().PodGroups(l.Namespace).Patch(t.Context(), "corrected", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	l.requireMisconfigured(t, "corrected", "False "+wellknown.ReasonConstraintAccepted)
	l.on(t, members...)
}

// requireMisconfigured waits until the condition Misconfigured of a group has the wanted status and reason, and its message
// contains the texts.
func (l *nodes) requireMisconfigured(t *testing.T, group, want string, texts ...string) {
	t.Helper()
	l.requireCondition(t, group, wellknown.ConditionMisconfigured, want, texts...)
}

// requireCondition waits until a condition of a group has the wanted status and reason, and its message contains the texts.
func (l *nodes) requireCondition(t *testing.T, group, name, want string, texts ...string) {
	t.Helper()
	env.Eventually(t, "condition "+name+" of PodGroup "+group, func(ctx context.Context) (string, error) {
		is, err := l.Client().SchedulingV1beta1().PodGroups(l.Namespace).Get(ctx, group, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		condition := meta.FindStatusCondition(is.Status.Conditions, name)
		if condition == nil || fmt.Sprintf("%s %s", condition.Status, condition.Reason) != want || !env.ContainsAll(condition.Message, texts) {
			return fmt.Sprintf("it is not %s %q but %v", want, texts, condition), nil
		}
		return "", nil
	})
}
