// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	scheduling "k8s.io/api/scheduling/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/clusterstate"
)

// Pods from files have the priority that the API server would give them.
func TestPriorities(t *testing.T) {
	pod := func(class string, priority *int32) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: named("ns", "p"), Spec: corev1.PodSpec{PriorityClassName: class, Priority: priority}}
	}
	class := func(name string, value int32, usual bool) *scheduling.PriorityClass {
		return &scheduling.PriorityClass{ObjectMeta: named("", name), Value: value, GlobalDefault: usual, PreemptionPolicy: ptr.To(corev1.PreemptNever)}
	}
	classes := []*scheduling.PriorityClass{class("high", 9, false), class("usual", 3, true), class("less", 2, true)}
	for name, test := range map[string]struct {
		pod     *corev1.Pod
		classes []*scheduling.PriorityClass
		want    *int32
		never   bool
	}{
		"of its class":             {pod("high", nil), classes, ptr.To[int32](9), true},
		"its own":                  {pod("high", ptr.To[int32](1)), classes, ptr.To[int32](1), false},
		"the least that is usual":  {pod("", nil), classes, ptr.To[int32](2), true},
		"of a class that is not":   {pod("low", nil), classes, nil, false},
		"none, as there is no one": {pod("", nil), nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := clusterstate.New(&clusterstate.Objects{Pods: []*corev1.Pod{test.pod}, PriorityClasses: test.classes})
			require.Equal(t, test.want, state.Pods[0].Spec.Priority)
			require.Equal(t, test.never, state.Pods[0].Spec.PreemptionPolicy != nil)
		})
	}
}

func TestFilesForPreemption(t *testing.T) {
	objects, err := read(t, `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b}
status: {disruptionsAllowed: 1}
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 7
`)
	require.NoError(t, err)
	require.Equal(t, []string{"team/b"}, names(objects.Budgets))
	require.EqualValues(t, 1, objects.Budgets[0].Status.DisruptionsAllowed)
	require.EqualValues(t, 7, objects.PriorityClasses[0].Value)
	both := objects.Overlay(&clusterstate.Objects{PriorityClasses: []*scheduling.PriorityClass{{ObjectMeta: named("", "low")}}})
	require.Equal(t, []string{"/high", "/low"}, names(both.PriorityClasses))
	require.Equal(t, []string{"team/b"}, names(both.Budgets))
}
