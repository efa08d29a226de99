// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/placement"
)

// ledger has the PlacementDecisions of the hub in the newest version that was seen,
// be it in an event, a list or the answer to a write. So a Placement is decided with
// what was written a moment ago even if the event of that is still to come.
type ledger struct {
	decisions *placement.Decisions

	mutex sync.Mutex
	// objects are not modified. placements has the names of those that have the label of
	// a Placement.
	objects    map[types.NamespacedName]*clusterv1beta1.PlacementDecision
	placements map[types.NamespacedName]sets.Set[string]
	// deleted are the last known versions of objects that were deleted here, and of which
	// the event is still to come.
	deleted map[types.NamespacedName]string
	// listed are the versions of the lists of all objects of a Placement: an event of before
	// of one that was in none of them tells of what is no more.
	listed map[types.NamespacedName]string
	// awaited are the answers that are still to come.
	awaited map[*answer]struct{}
}

// answer is that of the API server to a write or a list. It may come after the event that an object was
// deleted, and tells then of what is no more. gone are the objects that were deleted since it was asked
// for, with the versions of their deletions.
type answer struct {
	gone map[types.NamespacedName]string
}

func newLedger() *ledger {
	return &ledger{
		decisions:  placement.NewDecisions(),
		objects:    map[types.NamespacedName]*clusterv1beta1.PlacementDecision{},
		placements: map[types.NamespacedName]sets.Set[string]{},
		deleted:    map[types.NamespacedName]string{},
		listed:     map[types.NamespacedName]string{},
		awaited:    map[*answer]struct{}{},
	}
}

// await is called before an answer is asked for, and what it returns when that has been noted.
func (l *ledger) await() (noted func()) {
	a := &answer{map[types.NamespacedName]string{}}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.awaited[a] = struct{}{}
	return func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		delete(l.awaited, a)
	}
}

// isGone tells whether an object was deleted after this version, while an answer was awaited.
func (l *ledger) isGone(key types.NamespacedName, version string) bool {
	for a := range l.awaited {
		if !after(version, a.gone[key]) {
			return true
		}
	}
	return false
}

// set notes an object unless a newer version of it is known, or that it is gone.
func (l *ledger) set(object *clusterv1beta1.PlacementDecision) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	if l.objects[key] == nil && !after(object.ResourceVersion, l.listed[placementOf(object)]) {
		return
	}
	l.put(key, object)
}

func (l *ledger) put(key types.NamespacedName, object *clusterv1beta1.PlacementDecision) {
	if known := l.objects[key]; known != nil && older(object.ResourceVersion, known.ResourceVersion) {
		return
	}
	if !after(object.ResourceVersion, l.deleted[key]) || l.isGone(key, object.ResourceVersion) {
		return
	}
	l.drop(key)
	delete(l.deleted, key)
	l.objects[key] = object
	if owner := placementOf(object); l.placements[owner] == nil {
		l.placements[owner] = sets.New(key.Name)
	} else {
		l.placements[owner].Insert(key.Name)
	}
	l.decisions.Set(object)
}

// list notes that these are all objects of a Placement, and at which version that was so.
func (l *ledger) list(placement types.NamespacedName, objects []*clusterv1beta1.PlacementDecision, version string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.listed[placement] = version
	gone := l.placements[placement].Clone()
	for _, object := range objects {
		gone.Delete(object.Name)
		l.put(client.ObjectKeyFromObject(object), object)
	}
	for name := range gone {
		key := types.NamespacedName{Namespace: placement.Namespace, Name: name}
		if known := l.objects[key]; !older(version, known.ResourceVersion) {
			delete(l.deleted, key)
			l.drop(key)
			l.decisions.Delete(key.Namespace, key.Name)
		}
	}
}

// forget forgets when a Placement was listed.
func (l *ledger) forget(placement types.NamespacedName) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.listed, placement)
}

// remove notes that an object, last seen in this version, is gone.
func (l *ledger) remove(object client.Object) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	for a := range l.awaited {
		if after(object.GetResourceVersion(), a.gone[key]) {
			a.gone[key] = object.GetResourceVersion()
		}
	}
	if known := l.objects[key]; known != nil && older(object.GetResourceVersion(), known.ResourceVersion) {
		return
	}
	delete(l.deleted, key)
	l.drop(key)
	l.decisions.Delete(key.Namespace, key.Name)
}

// delete notes that an object was deleted in this version. Events of what was before
// may still come.
func (l *ledger) delete(object *clusterv1beta1.PlacementDecision) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := client.ObjectKeyFromObject(object)
	if known := l.objects[key]; known == nil || older(object.ResourceVersion, known.ResourceVersion) {
		return
	}
	l.deleted[key] = object.ResourceVersion
	l.drop(key)
	l.decisions.Delete(key.Namespace, key.Name)
}

func (l *ledger) drop(key types.NamespacedName) {
	known := l.objects[key]
	if known == nil {
		return
	}
	delete(l.objects, key)
	owner := placementOf(known)
	if l.placements[owner].Delete(key.Name); len(l.placements[owner]) == 0 {
		delete(l.placements, owner)
	}
}

// of returns the objects of a Placement, sorted by name. They must not be modified.
func (l *ledger) of(placement types.NamespacedName) []*clusterv1beta1.PlacementDecision {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var result []*clusterv1beta1.PlacementDecision
	for _, name := range sets.List(l.placements[placement]) {
		result = append(result, l.objects[types.NamespacedName{Namespace: placement.Namespace, Name: name}])
	}
	return result
}

// has tells whether an object is known in just this version.
func (l *ledger) has(object client.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.objects[client.ObjectKeyFromObject(object)]
	return known != nil && known.ResourceVersion != "" && known.UID == object.GetUID() && known.ResourceVersion == object.GetResourceVersion()
}

// handler keeps the ledger and then queues the Placements of the objects: who decides them at once has to
// find there what has changed.
func (l *ledger) handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { l.seen(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			l.seen(e.ObjectNew, q)
			if placementOf(e.ObjectOld) != placementOf(e.ObjectNew) {
				enqueue(e.ObjectOld, q, 0)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			l.remove(e.Object)
			enqueue(e.Object, q, 0)
		},
	}
}

func (l *ledger) seen(object client.Object, q queue) {
	decision, ok := object.(*clusterv1beta1.PlacementDecision)
	switch {
	case !ok:
	case l.has(object):
		enqueue(object, q, confirmAfter)
	default:
		l.set(decision)
		enqueue(object, q, 0)
	}
}

// enqueue queues the Placement that a PlacementDecision belongs to by its label.
func enqueue(object client.Object, q queue, after time.Duration) {
	request := reconcile.Request{NamespacedName: placementOf(object)}
	switch {
	case request.Name == "":
	case after > 0:
		q.AddAfter(request, after)
	default:
		q.Add(request)
	}
}

// placementOf is the Placement that an object belongs to by its label.
func placementOf(object client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[clusterv1beta1.PlacementLabel]}
}

// older tells whether a version precedes a known one; versions that can't be compared
// don't.
func older(version, known string) bool {
	if known == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, known)
	return err == nil && order < 0
}

// after tells whether a version comes after a known one. It does if none is known, or if they
// can't be compared.
func after(version, known string) bool {
	return known == "" || version != known && !older(version, known)
}
