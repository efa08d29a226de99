// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/celset/celset/admission/guard"
)

// follow passes all claims and slices to a guard until the context ends. It returns true once both kinds have been listed. It
// returns false if the context ends before.
func follow(ctx context.Context, client kubernetes.Interface, g *guard.Guard) bool {
	claims := newStore(g.See, func(c *resourceapi.ResourceClaim) { g.Gone(c.UID) }, g.ReplaceClaims)
	slices := newStore(g.SeeSlice, func(s *resourceapi.ResourceSlice) { g.GoneSlice(s.Name) },
		func(all []*resourceapi.ResourceSlice, _ string) { g.ReplaceSlices(all) })
	reflect(ctx, "claims", &resourceapi.ResourceClaim{}, claims, client.ResourceV1().ResourceClaims(metav1.NamespaceAll).List, client.ResourceV1().ResourceClaims(metav1.NamespaceAll).Watch)
	reflect(ctx, "slices", &resourceapi.ResourceSlice{}, slices, client.ResourceV1().ResourceSlices().List, client.ResourceV1().ResourceSlices().Watch)
	for _, listed := range []<-chan struct{}{claims.listed, slices.listed} {
		select {
		case <-ctx.Done():
			return false
		case <-listed:
		}
	}
	return true
}

// reflect starts to list and watch one kind of object. The first list comes from etcd, because caches of API servers may be
// stale.
func reflect[L runtime.Object](ctx context.Context, name string, kind runtime.Object, store cache.ReflectorStore,
	list func(context.Context, metav1.ListOptions) (L, error), watchAll func(context.Context, metav1.ListOptions) (watch.Interface, error),
) {
	lw := listWatcher{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.ResourceVersion == "0" {
				options.ResourceVersion = ""
			}
			return list(ctx, options)
		},
		WatchFuncWithContext: watchAll,
	}}
	reflector := cache.NewReflectorWithOptions(lw, kind, store, cache.ReflectorOptions{Name: "guard: " + name})
	go reflector.RunWithContext(ctx)
}

// listWatcher lists with plain list requests, because streamed lists come from the API server's cache.
type listWatcher struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported makes reflectors use plain list requests.
func (listWatcher) IsWatchListSemanticsUnSupported() bool { return true }

// store passes the objects of a reflector to functions. It closes listed after the first list.
type store[T any] struct {
	see     func(T)
	gone    func(T)
	replace func([]T, string)
	listed  chan struct{}
	first   func()
}

func newStore[T any](see, gone func(T), replace func([]T, string)) *store[T] {
	s := &store[T]{see: see, gone: gone, replace: replace, listed: make(chan struct{})}
	s.first = sync.OnceFunc(func() { close(s.listed) })
	return s
}

func (s *store[T]) with(object any, do func(T)) error {
	one, ok := object.(T)
	if !ok {
		return fmt.Errorf("guard of allocations: got a %T from a watch", object)
	}
	do(one)
	return nil
}

// Add implements cache.ReflectorStore.
func (s *store[T]) Add(object any) error { return s.with(object, s.see) }

// Update implements cache.ReflectorStore.
func (s *store[T]) Update(object any) error { return s.with(object, s.see) }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(object any) error { return s.with(object, s.gone) }

// Replace implements cache.ReflectorStore.
func (s *store[T]) Replace(objects []any, version string) error {
	all, errs := make([]T, 0, len(objects)), []error(nil)
	for _, object := range objects {
		errs = append(errs, s.with(object, func(one T) { all = append(all, one) }))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.replace(all, version)
	s.first()
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store[T]) Resync() error { return nil }

// live reads from etcd by way of the API server.
type live struct{ client kubernetes.Interface }

// Claim implements guard.Live.
func (l live) Claim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
	claim, err := l.client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return claim, err
}

// Slices implements guard.Live.
func (l live) Slices(ctx context.Context, driver string) ([]*resourceapi.ResourceSlice, error) {
	list, err := l.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(resourceapi.ResourceSliceSelectorDriver, driver).String(),
	})
	if err != nil {
		return nil, err
	}
	slices := make([]*resourceapi.ResourceSlice, len(list.Items))
	for i := range list.Items {
		slices[i] = &list.Items[i]
	}
	return slices, nil
}
