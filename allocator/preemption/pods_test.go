// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// podOf is a pod with a priority that started at a second, or not yet.
func podOf(name string, priority int32, start int64) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1.PodSpec{Priority: ptr.To(priority)}}
	if start != 0 {
		pod.Status.StartTime = &metav1.Time{Time: time.Unix(start, 0)}
	}
	return pod
}

func namesOf(pods []*v1.Pod) []string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return names
}

func TestWhoIsMoreImportant(t *testing.T) {
	pods := []*v1.Pod{podOf("late", 5, 20), podOf("low", 4, 1), podOf("waiting", 5, 0), podOf("early", 5, 10), podOf("high", 6, 30)}
	slices.SortFunc(pods, func(a, b *v1.Pod) int { return CompareImportance(a, b, time.Unix(25, 0)) })
	require.Equal(t, []string{"high", "early", "late", "waiting", "low"}, namesOf(pods))
	require.Zero(t, PriorityOf(&v1.Pod{}))
	require.Equal(t, Pod{Priority: 5, Start: time.Unix(25, 0)}, PodOf(pods[3], nil, time.Unix(25, 0)))
}

func TestWhoIsNominated(t *testing.T) {
	waiting := podOf("b", 5, 0)
	require.False(t, IsNominated(waiting))
	waiting.Status.NominatedNodeName = "node-1"
	require.True(t, IsNominated(waiting))
	bound := waiting.DeepCopy()
	bound.Spec.NodeName = "node-1"
	require.False(t, IsNominated(bound))
	ending := waiting.DeepCopy()
	ending.DeletionTimestamp = &metav1.Time{}
	require.False(t, IsNominated(ending))

	first, older := podOf("a", 5, 0), podOf("c", 5, 0)
	older.CreationTimestamp = metav1.Unix(1, 0)
	first.CreationTimestamp, waiting.CreationTimestamp = metav1.Unix(2, 0), metav1.Unix(2, 0)
	pods := []*v1.Pod{podOf("low", 4, 0), waiting, first, older, podOf("high", 6, 0)}
	slices.SortFunc(pods, CompareNominated)
	require.Equal(t, []string{"high", "c", "a", "b", "low"}, namesOf(pods))
}

func TestWhoMakesRoom(t *testing.T) {
	ending := podOf("ending", 4, 1)
	require.False(t, MakesRoom(ending, podOf("p", 5, 0)))
	ending.DeletionTimestamp = &metav1.Time{}
	require.True(t, MakesRoom(ending, podOf("p", 5, 0)))
	require.False(t, MakesRoom(ending, podOf("p", 4, 0)))
}

func TestBudgetsThatAPodCountsFor(t *testing.T) {
	budgetFor := func(namespace string, allowed int32, selector *metav1.LabelSelector) *policy.PodDisruptionBudget {
		return &policy.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: policy.PodDisruptionBudgetSpec{Selector: selector},
			Status: policy.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
		}
	}
	app := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	}
	wrong := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	knows := budgetFor("ns", 4, app("a"))
	knows.Status.DisruptedPods = map[string]metav1.Time{"evicted": {}}
	budgets := NewBudgets([]*policy.PodDisruptionBudget{
		budgetFor("ns", 0, nil), budgetFor("ns", 9, &metav1.LabelSelector{}), budgetFor("ns", 9, wrong),
		budgetFor("ns", 1, app("a")), budgetFor("ns", 2, app("b")), budgetFor("other", 3, app("a")), knows,
	})
	require.Equal(t, []int32{0, 1, 2, 3, 4}, budgets.Allowed())
	pod := podOf("p", 1, 1)
	require.Empty(t, budgets.Of(pod))
	pod.Labels = map[string]string{"app": "a"}
	require.Equal(t, []int{1, 4}, budgets.Of(pod))
	pod.Name = "evicted"
	require.Equal(t, []int{1}, budgets.Of(pod))
}
