// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demand

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// KeepWhole keeps free sets whole for future claims. Future claims are unknown, so KeepWhole expects claims like the latest
// ones. Users who create claims can influence this only within limits. Only classes define which sets a shape allows. A claim
// adds only its number of devices and its frequency. One namespace has at most an eighth of the remembered claims.

const (
	// maxAskedClaims limits the remembered claims. maxAskedClaimsOfNamespace limits the remembered claims of one namespace.
	maxAskedClaims            = 1024
	maxAskedClaimsOfNamespace = maxAskedClaims / 8
)

// Shapes counts the shapes of the latest claims of a cluster. It is safe for concurrent use.
type Shapes struct {
	classes v1alpha1.ClassGetter

	// mutex guards the fields below.
	mutex sync.Mutex
	// claims has an *askedClaim for each remembered claim, oldest first. byNamespace has the same list elements by namespace, in
	// the same order.
	claims      list.List
	byNamespace map[string][]*list.Element
	// counts maps a shape to the number of remembered claims that request it. Shapes with count 0 are absent.
	counts map[allocator.Shape]int
	// most is the cached result of Most. It is nil if it must be computed again.
	most []allocator.Shape
}

type askedClaim struct {
	namespace string
	shapes    []allocator.Shape
}

// New returns a Shapes without remembered claims.
func New() *Shapes {
	return &Shapes{byNamespace: map[string][]*list.Element{}, counts: map[allocator.Shape]int{}}
}

// Watch adds the informer's claims, now and later, until ctx is done.
func (a *Shapes) Watch(ctx context.Context, factory informers.SharedInformerFactory) error {
	classes := factory.Resource().V1().DeviceClasses()
	a.classes = classes.Lister()
	// Only this handler waits for the classes, not the informer's other handlers.
	synced := sync.OnceValue(func() bool {
		return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return classes.Informer().HasSynced(), nil }) == nil
	})
	_, err := factory.Resource().V1().ResourceClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if claim, ok := object.(*resourceapi.ResourceClaim); ok && synced() {
			a.add(claim.Namespace, allocator.ShapesOf(claim, a.classes))
		}
	}})
	return err
}

// add remembers a claim by the shapes that it requests.
func (a *Shapes) add(namespace string, shapes []allocator.Shape) {
	if len(shapes) == 0 {
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	switch {
	case len(a.byNamespace[namespace]) == maxAskedClaimsOfNamespace:
		a.forget(a.byNamespace[namespace][0])
	case a.claims.Len() == maxAskedClaims:
		a.forget(a.claims.Front())
	}
	a.byNamespace[namespace] = append(a.byNamespace[namespace], a.claims.PushBack(&askedClaim{namespace, shapes}))
	for _, shape := range shapes {
		a.count(shape, 1)
	}
}

// forget removes a remembered claim. The claim must be the oldest of its namespace.
func (a *Shapes) forget(oldest *list.Element) {
	claim := a.claims.Remove(oldest).(*askedClaim)
	if rest := slices.Delete(a.byNamespace[claim.namespace], 0, 1); len(rest) > 0 {
		a.byNamespace[claim.namespace] = rest
	} else {
		delete(a.byNamespace, claim.namespace)
	}
	for _, shape := range claim.shapes {
		a.count(shape, -1)
	}
}

// count adds more to the count of a shape. It drops the cached result of Most if allocator.AskedFrequency of the count changes.
func (a *Shapes) count(shape allocator.Shape, more int) {
	before := a.counts[shape]
	after := before + more
	if a.counts[shape] = after; after == 0 {
		delete(a.counts, shape)
	}
	if allocator.AskedFrequency(before) != allocator.AskedFrequency(after) {
		a.most = nil
	}
}

// Most returns the shapes that are requested most often. They are ordered by frequency and then by size, descending. Callers
// must not modify the result.
func (a *Shapes) Most() []allocator.Shape {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.most == nil {
		a.most = allocator.MostAsked(a.counts)
	}
	return a.most
}
