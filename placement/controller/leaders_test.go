// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/cases"
)

// decisionGroups has the API groups that have a kind PlacementDecision.
var decisionGroups = []string{clusterv1beta1.GroupName, profilev1alpha1.Group}

// requireComplete checks after each write that every cluster is in at least one PlacementDecision of the written object's API
// group.
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

// TestClustersAreNeverMissingWithTwoLeaders has two processes that act as leaders. They stop at any write, and continue later
// or never. Requests and responses get lost, requests and events are late, processes restart, and the decision groups change.
// After each write every cluster must be in at least one PlacementDecision, and in the end in exactly one.
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
		if value := object.GetAnnotations()[wellknown.AnnotationConfirmed]; confirmed[identify(object)] != value {
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

// stored is the API server's storage of both kinds of PlacementDecisions. As in etcd, all objects share one counter of
// versions, and a write that changes nothing makes no new version. The fake client of controller-runtime does neither.
type stored struct {
	version int
	objects map[identity]client.Object
	// history has all versions of all objects, in the order of their events.
	history []told
	// written is called after each write.
	written func(verb string, object client.Object)
}

// identity identifies an object by its API group and its name.
type identity struct{ group, name string }

func identify(object client.Object) identity {
	group := clusterv1beta1.GroupName
	if _, profile := object.(*profilev1alpha1.PlacementDecision); profile {
		group = profilev1alpha1.Group
	}
	return identity{group, object.GetName()}
}

func (i identity) resource() schema.GroupResource {
	return schema.GroupResource{Group: i.group, Resource: "placementdecisions"}
}

// told is an event of a watch. If gone is set, the object was deleted, and object is its last version.
type told struct {
	object client.Object
	gone   bool
}

func copied[T client.Object](object T) T { return object.DeepCopyObject().(T) }

func (s *stored) store(verb string, object client.Object) client.Object {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	s.history = append(s.history, told{object, verb == "delete"})
	if s.objects[identify(object)] = object; verb == "delete" {
		delete(s.objects, identify(object))
	}
	s.written(verb, object)
	return object
}

// find returns the stored object. If its version is not the given one, find returns a conflict.
func (s *stored) find(like client.Object, version string) (client.Object, error) {
	id := identify(like)
	switch is := s.objects[id]; {
	case is == nil:
		return nil, apierrors.NewNotFound(id.resource(), id.name)
	case is.GetResourceVersion() != version:
		return nil, apierrors.NewConflict(id.resource(), id.name, errors.New("it has changed"))
	default:
		return is, nil
	}
}

func (s *stored) create(object client.Object) (client.Object, error) {
	if id := identify(object); s.objects[id] != nil {
		return nil, apierrors.NewAlreadyExists(id.resource(), id.name)
	}
	object = copied(object)
	object.SetUID(types.UID("uid-" + strconv.Itoa(s.version+1)))
	if of, is := object.(*clusterv1beta1.PlacementDecision); is {
		of.Status = clusterv1beta1.PlacementDecisionStatus{}
	}
	return s.store("create", object), nil
}

// update stores an object. If status is set and the kind has a status subresource, it stores only the status.
func (s *stored) update(object client.Object, status bool) (client.Object, error) {
	is, err := s.find(object, object.GetResourceVersion())
	if err != nil {
		return nil, err
	}
	next := copied(object)
	if of, has := is.(*clusterv1beta1.PlacementDecision); has {
		all := next.(*clusterv1beta1.PlacementDecision)
		if status {
			of = copied(of)
			of.Status, all = all.Status, of
			next = all
		} else {
			all.Status = *of.Status.DeepCopy()
		}
	}
	if equality.Semantic.DeepEqual(is, next) {
		return is, nil
	}
	return s.store("update", next), nil
}

func (s *stored) delete(object client.Object, preconditions client.Preconditions) error {
	is, err := s.find(object, *preconditions.ResourceVersion)
	if err == nil && is.GetUID() != *preconditions.UID {
		err = apierrors.NewConflict(identify(object).resource(), object.GetName(), errors.New("it is another one"))
	}
	if err == nil {
		s.store("delete", copied(is))
	}
	return err
}

// chosen returns the clusters in each PlacementDecision of an API group that has the label of the Placement.
func (s *stored) chosen(group string) map[string][]string {
	result := map[string][]string{}
	for id, object := range s.objects {
		if id.group == group && labelled(object) {
			result[id.name] = chosenBy(object)
		}
	}
	return result
}

// labelled reports whether an object has the label of Placement p.
func labelled(object client.Object) bool {
	key := clusterv1beta1.PlacementLabel
	if identify(object).group == profilev1alpha1.Group {
		key = profilev1alpha1.DecisionKeyLabel
	}
	return object.GetLabels()[key] == "p"
}

func chosenBy(object client.Object) []string {
	names := []string{}
	switch object := object.(type) {
	case *clusterv1beta1.PlacementDecision:
		for _, d := range object.Status.Decisions {
			names = append(names, d.ClusterName)
		}
	case *profilev1alpha1.PlacementDecision:
		for _, d := range object.Decisions {
			names = append(names, d.ClusterProfileRef.Name)
		}
	}
	return names
}

// listed fills a list with those objects that have the kind of the list.
func listed(objects map[identity]client.Object, into client.ObjectList) {
	group := profilev1alpha1.Group
	if _, is := into.(*clusterv1beta1.PlacementDecisionList); is {
		group = clusterv1beta1.GroupName
	}
	var all []runtime.Object
	for _, id := range slices.SortedFunc(maps.Keys(objects), func(a, b identity) int { return cmp.Compare(a.name, b.name) }) {
		if object := objects[id]; id.group == group && labelled(object) {
			all = append(all, object.DeepCopyObject())
		}
	}
	if err := meta.SetList(into, all); err != nil {
		panic(err)
	}
}
