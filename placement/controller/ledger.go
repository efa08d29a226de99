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

// ledger holds the newest version of each PlacementDecision of the hub that was received in an event, a list or the answer to a
// write. So a Placement is decided with the latest writes, even if their events have not arrived.
type ledger struct {
	decisions *placement.Decisions

	mutex sync.Mutex
	// objects must not be modified. placements maps a Placement to the names of the objects with its label.
	objects    map[types.NamespacedName]*clusterv1beta1.PlacementDecision
	placements map[types.NamespacedName]sets.Set[string]
	// deleted maps an object that this process deleted to its last version, until the event arrives.
	deleted map[types.NamespacedName]string
	// listed maps a Placement to the version of the last list of its objects. Older events about unlisted objects are obsolete.
	listed map[types.NamespacedName]string
	// awaited are the answers that have not arrived yet.
	awaited map[*answer]struct{}
}

// answer is a pending answer of the API server to a write or a list. If it arrives after the event of a deletion, its content is
// obsolete. gone maps each object deleted since the request to the version of its deletion.
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

// expectAnswer must be called before a request, and noted after its answer was stored.
func (l *ledger) expectAnswer() (noted func()) {
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

// isGone reports whether an object of this version was deleted while an answer was pending.
func (l *ledger) isGone(key types.NamespacedName, version string) bool {
	for a := range l.awaited {
		if !after(version, a.gone[key]) {
			return true
		}
	}
	return false
}

// set stores an object unless a newer version is stored or the object was deleted.
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

// list stores a complete list of the objects of a Placement, with the version of the list.
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

// forget removes the version of the last list of a Placement.
func (l *ledger) forget(placement types.NamespacedName) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.listed, placement)
}

// remove handles the event of a deletion. The object has its last version.
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

// delete removes an object that this process deleted in this version. Older events about it may still arrive.
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

// of returns the objects of a Placement, sorted by name. The caller must not modify them.
func (l *ledger) of(placement types.NamespacedName) []*clusterv1beta1.PlacementDecision {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var result []*clusterv1beta1.PlacementDecision
	for _, name := range sets.List(l.placements[placement]) {
		result = append(result, l.objects[types.NamespacedName{Namespace: placement.Namespace, Name: name}])
	}
	return result
}

// has reports whether the ledger has an object in exactly this version.
func (l *ledger) has(object client.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.objects[client.ObjectKeyFromObject(object)]
	return known != nil && known.ResourceVersion != "" && known.UID == object.GetUID() && known.ResourceVersion == object.GetResourceVersion()
}

// handler updates the ledger before it adds Placements to the queue, because a worker may decide a Placement at once and must
// find the change.
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

// enqueue adds the Placement named by the label of a PlacementDecision to the queue.
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

// placementOf returns the Placement named by the label of an object.
func placementOf(object client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[clusterv1beta1.PlacementLabel]}
}

// older reports whether a version precedes a known one. It returns false if the versions can't be compared.
func older(version, known string) bool {
	if known == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, known)
	return err == nil && order < 0
}

// after reports whether a version follows a known one. It returns true if known is empty or the versions can't be compared.
func after(version, known string) bool {
	return known == "" || version != known && !older(version, known)
}
