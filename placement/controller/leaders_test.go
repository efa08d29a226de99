// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement"
)

// decisionGroups are the API groups that have PlacementDecisions.
var decisionGroups = []string{clusterv1beta1.GroupName, profilev1alpha1.Group}

// requireComplete demands from now on that every cluster is in some PlacementDecision after
// each write, in each of both kinds.
func (w *world) requireComplete(t require.TestingT) {
	written := w.written
	w.written = func(verb string, object client.Object) {
		written(verb, object)
		group := identify(object).group
		there := map[string]bool{}
		for _, names := range w.chosen(group) {
			for _, name := range names {
				there[name] = true
			}
		}
		for name := range w.groups {
			require.True(t, there[name], "%s is in no PlacementDecision of %s after %s of %s: %v", name, group, verb, object.GetName(), w.chosen(group))
		}
	}
}

// Two leaders create the same slice. The second one has moved another cluster to it.
func TestSliceOfAnotherLeaderLosesNoCluster(t *testing.T) {
	for _, group := range decisionGroups {
		w := newWorld(4)
		first, second := w.newLeader(), w.newLeader()
		first.finish()
		first.watch(1000)
		second.watch(1000)
		w.requireComplete(t)
		w.label("c0", "b")
		require.True(t, first.until(group, "create", "p-decision-2"))
		w.label("c0", "")
		w.label("c1", "b")
		second.finish()
		want := map[string][]string{"p-decision-1": {"c0", "c2", "c3"}, "p-decision-2": {"c1"}}
		if group == profilev1alpha1.Group {
			// The first one has written the other kind.
			second.watch(1000)
			second.finish()
		}
		require.Equal(t, want, w.chosen(group))
		for first.deciding {
			first.answer(done)
		}
		require.Equal(t, want, w.chosen(group), "it is not as he knows it")
		require.Equal(t, 1, w.answers["AlreadyExists"])
	}
}

// An object that has lost its label is taken back, and nobody's clusters are lost.
func TestSliceWithoutLabelIsTakenBack(t *testing.T) {
	for _, group := range decisionGroups {
		w := newWorld(4)
		leader := w.newLeader()
		leader.finish()
		leader.watch(1000)
		want := w.chosen(group)
		object := copied(w.objects[identity{group, "p-decision-1"}])
		object.SetLabels(map[string]string{"other": "label"})
		_, err := w.update(object, false)
		require.NoError(t, err)
		require.Empty(t, w.chosen(group))
		for range 3 {
			leader.watch(1000)
			leader.finish()
		}
		require.Equal(t, want, w.chosen(group))
		require.Equal(t, "label", w.objects[identity{group, "p-decision-1"}].GetLabels()["other"])
	}
}

// Two take themselves for leaders. They stop at any write and go on later, or never; requests
// and answers are lost, requests arrive when nobody waits for them, events are late;
// processes begin anew, and what is wanted changes all the while. Every cluster is in some
// slice after each write, and in the end in one.
func TestClustersAreNeverMissingWithTwoLeaders(t *testing.T) {
	counts := map[string]int{}
	positive := func() bool {
		for _, event := range []string{done, answerLost, refused, late, "arrived", "Conflict", "confirmed", "both", "begun", "AlreadyExists"} {
			if counts[event] == 0 {
				return false
			}
		}
		return true
	}
	cases.Until(t, cases.Of(50, 1000), positive, func(t *rapid.T) { checkLeaders(t, counts) })
	require.True(t, positive(), "%v", counts)
	t.Log(counts)
}

func checkLeaders(t *rapid.T, counts map[string]int) {
	w := newWorld(4)
	leaders := []*leader{w.newLeader(), w.newLeader()}
	defer func() {
		for _, l := range leaders {
			l.give()
		}
	}()
	leaders[0].finish()
	confirmed := map[identity]string{}
	w.written = func(_ string, object client.Object) {
		if value := object.GetAnnotations()[placement.ConfirmedAnnotation]; confirmed[identify(object)] != value {
			confirmed[identify(object)] = value
			w.answers["confirmed"]++
		}
	}
	w.requireComplete(t)
	somebody := func(t *rapid.T) *leader { return leaders[rapid.IntRange(0, len(leaders)-1).Draw(t, "leader")] }
	cluster, group := rapid.SampledFrom([]string{"c0", "c1", "c2", "c3"}), rapid.SampledFrom([]string{"", "a", "b"})
	outcome := rapid.SampledFrom([]string{done, done, done, done, done, answerLost, refused, late})
	step := func(l *leader, what string) {
		if leaders[0].deciding && leaders[1].deciding {
			w.answers["both"]++
		}
		l.answer(what)
	}
	t.Repeat(map[string]func(*rapid.T){
		"label": func(t *rapid.T) { w.label(cluster.Draw(t, "cluster"), group.Draw(t, "group")) },
		"group": func(t *rapid.T) {
			names := rapid.SampledFrom([][]string{{"a", "b"}, {"b", "a"}, {"a"}, nil}).Draw(t, "groups")
			w.group(rapid.IntRange(0, 2).Draw(t, "length"), names...)
		},
		"decide": func(t *rapid.T) { somebody(t).start() },
		"answer": func(t *rapid.T) {
			if l := somebody(t); l.waits != nil {
				step(l, outcome.Draw(t, "what"))
			}
		},
		"answers": func(t *rapid.T) {
			l := somebody(t)
			for range rapid.IntRange(1, 6).Draw(t, "requests") {
				if l.start(); l.waits != nil {
					step(l, done)
				}
			}
		},
		"watch": func(t *rapid.T) {
			somebody(t).watch(rapid.IntRange(1, 10).Draw(t, "versions"))
		},
		"arrive": func(*rapid.T) {
			if len(w.late) > 0 {
				w.arrive()
			}
		},
		"begin": func(t *rapid.T) {
			l := somebody(t)
			if l.waits != nil {
				step(l, rapid.SampledFrom([]string{answerLost, refused, late}).Draw(t, "what"))
			}
			l.give()
			l.begin()
			w.answers["begun"]++
		},
	})
	for _, l := range leaders {
		l.give()
	}
	for len(w.late) > 0 {
		w.arrive()
	}
	for name, n := range w.answers {
		counts[name] += n
	}
	for version := -1; version != w.version; {
		version = w.version
		leaders[0].watch(len(w.history))
		leaders[0].finish()
	}
	for _, group := range decisionGroups {
		var all []string
		for _, names := range w.chosen(group) {
			all = append(all, names...)
		}
		slices.Sort(all)
		require.Equal(t, []string{"c0", "c1", "c2", "c3"}, all)
	}
}
