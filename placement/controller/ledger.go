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

// ledger holds the newest known version of each PlacementDecision of the hub: from an event, a list, or the response to a
// write. So the controller decides a Placement with its own latest writes, even if their events have not arrived.
type ledger struct {
	decisions *placement.Decisions

	mutex sync.Mutex
	// objects must not be modified. placements maps a Placement to the names of its PlacementDecisions.
	objects    map[types.NamespacedName]*clusterv1beta1.PlacementDecision
	placements map[types.NamespacedName]sets.Set[string]
	// deleted maps an object that this process deleted to its last version, until the event of the deletion arrives.
	deleted map[types.NamespacedName]string
	// listed maps a Placement to the version of the last list of its PlacementDecisions. An older event about an object that was
	// not in the list is obsolete.
	listed map[types.NamespacedName]string
	// awaited has the requests in progress.
	awaited map[*answer]struct{}
}

// answer is a write or a list whose response has not been stored yet. If an object is deleted meanwhile, an older version in
// the response is obsolete. gone maps each object deleted since the request to the version of its deletion.
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

// expectAnswer must be called before a request. noted must be called after the response to the request was stored.
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

// isGone reports whether the object was deleted, in this version or a later one, during a request that is still in progress.
func (l *ledger) isGone(key types.NamespacedName, version string) bool {
	for a := range l.awaited {
		if !after(version, a.gone[key]) {
			return true
		}
	}
	return false
}

// set stores an object. It ignores the object if a newer version is stored, or if the object was deleted since.
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

// list stores the result of listing all PlacementDecisions of a Placement. version is the version of the list.
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

// forget removes the version of the last list of a Placement's PlacementDecisions.
func (l *ledger) forget(placement types.NamespacedName) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.listed, placement)
}

// remove handles the event of a deletion. object is the last version of the deleted object.
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

// delete removes an object after this process has deleted this version of it. Older events about the object may still arrive.
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

// of returns the PlacementDecisions of a Placement, sorted by name. The caller must not modify them.
func (l *ledger) of(placement types.NamespacedName) []*clusterv1beta1.PlacementDecision {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	var result []*clusterv1beta1.PlacementDecision
	for _, name := range sets.List(l.placements[placement]) {
		result = append(result, l.objects[types.NamespacedName{Namespace: placement.Namespace, Name: name}])
	}
	return result
}

// has reports whether the ledger already has exactly this version of the object.
func (l *ledger) has(object client.Object) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.objects[client.ObjectKeyFromObject(object)]
	return known != nil && known.ResourceVersion != "" && known.UID == object.GetUID() && known.ResourceVersion == object.GetResourceVersion()
}

// handler returns an event handler. It updates the ledger before it queues a Placement, because a worker may decide the
// Placement at once and must find the change in the ledger.
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

// enqueue queues the Placement to which a PlacementDecision belongs by its label, after the given delay.
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

// placementOf returns the name of the Placement in the label of a PlacementDecision.
func placementOf(object client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetLabels()[clusterv1beta1.PlacementLabel]}
}

// older reports whether version precedes known. It returns false if known is empty or if the versions can't be compared.
func older(version, known string) bool {
	if known == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, known)
	return err == nil && order < 0
}

// after reports whether version follows known. It returns true if known is empty or if the versions can't be compared.
func after(version, known string) bool {
	return known == "" || version != known && !older(version, known)
}
