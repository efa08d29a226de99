// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stored is what an API server stores of the PlacementDecisions of both kinds. Unlike the
// one of controller-runtime its versions grow over all objects, as those of etcd do, and a
// write that changes nothing makes none.
type stored struct {
	version int
	objects map[identity]client.Object
	// history has every version of every object, in the order in which a watch tells them.
	history []told
	// written is called after each.
	written func(verb string, object client.Object)
}

// identity is which object it is, by the API group of its kind.
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

// told is what a watch tells: a version of an object, or the last one when it is gone.
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

// find returns the stored object for one in this version.
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

// update stores an object, or only its status, where it has one of its own.
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

// chosen are the clusters that the objects of a group have, by the name of the object, if
// they have the label of the Placement.
func (s *stored) chosen(group string) map[string][]string {
	result := map[string][]string{}
	for id, object := range s.objects {
		if id.group == group && labelled(object) {
			result[id.name] = chosenBy(object)
		}
	}
	return result
}

// labelled tells whether an object has the label of the Placement p.
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

// listed fills a list with those of some objects that belong in it.
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
