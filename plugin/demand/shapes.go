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

// What keeps blocks whole has to know what blocks are: sets that somebody may ask for. Who asks for
// them tomorrow is unknown, so those of the last claims are taken. Whoever may create claims has an
// influence on it, and this is how little: what a set has to satisfy, classes alone say; what claims
// contribute is a number of devices, and how often; and the claims of one namespace are an eighth of
// those that are remembered.

const (
	// maxAskedClaims and maxAskedClaimsOfNamespace are how many claims are remembered.
	maxAskedClaims            = 1024
	maxAskedClaimsOfNamespace = maxAskedClaims / 8
)

// Shapes are the shapes that the last claims of a cluster asked for. It is safe for concurrent
// use.
type Shapes struct {
	classes v1alpha1.ClassGetter

	// mutex guards what follows.
	mutex sync.Mutex
	// claims has an askedClaim for each claim that asks for a shape, the oldest first.
	// byNamespace has its elements in the same order.
	claims      list.List
	byNamespace map[string][]*list.Element
	// counts says how many of the claims ask for a shape. It has no zeros.
	counts map[allocator.Shape]int
	// most is the result, nil if it has to be found out.
	most []allocator.Shape
}

type askedClaim struct {
	namespace string
	shapes    []allocator.Shape
}

// New returns the plugin of one profile.
func New() *Shapes {
	return &Shapes{byNamespace: map[string][]*list.Element{}, counts: map[allocator.Shape]int{}}
}

// Watch begins to look at claims, until the context ends.
func (a *Shapes) Watch(ctx context.Context, factory informers.SharedInformerFactory) error {
	classes := factory.Resource().V1().DeviceClasses()
	a.classes = classes.Lister()
	// Who looks at the first claims waits for the classes. Nobody else waits for that.
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

// add remembers a claim.
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

// forget forgets the oldest claim of its namespace.
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

// count counts a shape. As long as its frequency stays the same, so does the result.
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

// Most are the shapes that were asked for most, the most frequent first and of those the largest. The
// result is not modified.
func (a *Shapes) Most() []allocator.Shape {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.most == nil {
		a.most = allocator.MostAsked(a.counts)
	}
	return a.most
}
