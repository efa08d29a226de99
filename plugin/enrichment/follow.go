// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// Resource is the resource that an Enrichment reads.
var Resource = v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.DeviceAttributesResource)

const (
	// firstList limits the time of the request at the start of the scheduler.
	firstList = 5 * time.Second
	// lookAgain is the time between two requests that detect whether the API server serves the kind.
	lookAgain = 10 * time.Second
)

// follower holds the current DeviceAttributes objects. It is safe for concurrent use.
//
// The kind is optional and may be installed or deleted at any time. While the API server does not serve it, the follower has no
// watch, and sends one small request every few seconds. A watch would log an error each time that it is refused.
type follower struct {
	client dynamic.Interface
	clock  clock.Clock
	// changed is called after an object was added, changed or deleted. isStatus is true if only its status may have changed.
	changed func(isStatus bool)

	// mutex guards the fields below.
	mutex   sync.Mutex
	objects map[string]*v1alpha1.DeviceAttributes
	// unreadable is the last error that was logged, so that a permanent error is logged once.
	unreadable string
}

func newFollower(config *Config, changed func(isStatus bool)) *follower {
	return &follower{client: config.Client, clock: config.Clock, changed: changed, objects: map[string]*v1alpha1.DeviceAttributes{}}
}

// list returns the objects, sorted by name. They must not be modified.
func (f *follower) list() []*v1alpha1.DeviceAttributes {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	all := make([]*v1alpha1.DeviceAttributes, 0, len(f.objects))
	for _, object := range f.objects {
		all = append(all, object)
	}
	slices.SortFunc(all, func(a, b *v1alpha1.DeviceAttributes) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (f *follower) isEmpty() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.objects) == 0
}

// get returns the object with the name if it has the UID, otherwise nil.
func (f *follower) get(name string, uid types.UID) *v1alpha1.DeviceAttributes {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if object := f.objects[name]; object != nil && object.UID == uid {
		return object
	}
	return nil
}

// readFirst reads the objects before the scheduler starts. Without it, the first cycles would see devices without the attributes
// that they are going to get.
func (f *follower) readFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstList)
	defer cancel()
	list, err := f.client.Resource(Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		f.report(ctx, err)
		return
	}
	for i := range list.Items {
		f.set(ctx, &list.Items[i])
	}
}

// run follows the objects until ctx is done.
func (f *follower) run(ctx context.Context) {
	for ctx.Err() == nil {
		if f.isServed(ctx) {
			f.watch(ctx)
			f.clear()
		}
		sleep(ctx, f.clock, wait.Jitter(lookAgain, .1))
	}
}

// isServed reports whether the API server serves the kind to the scheduler.
func (f *follower) isServed(ctx context.Context) bool {
	_, err := f.client.Resource(Resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		f.report(ctx, err)
		if !apierrors.IsNotFound(err) {
			return false
		}
		f.clear()
	}
	return err == nil
}

// report logs an error once. That the kind is not served is no error.
func (f *follower) report(ctx context.Context, err error) {
	if apierrors.IsNotFound(err) || ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled) {
		return
	}
	f.mutex.Lock()
	text := err.Error()
	isNew := f.unreadable != text
	f.unreadable = text
	f.mutex.Unlock()
	if isNew {
		klog.FromContext(ctx).Error(err, "Could not read DeviceAttributes, so devices don't get their attributes", "resource", Resource)
	}
}

// watch follows the objects while the API server serves the kind.
func (f *follower) watch(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	informer := dynamicinformer.NewFilteredDynamicInformer(f.client, Resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.set(ctx, object) },
		UpdateFunc: func(_, object any) { f.set(ctx, object) },
		DeleteFunc: func(object any) { f.delete(object) },
	}
	err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) {
			cancel()
			return
		}
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	if err == nil {
		_, err = informer.AddEventHandler(handler)
	}
	if err != nil {
		f.report(ctx, err)
		return
	}
	go func() {
		// An object of the first list may have been deleted before the watch began.
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			f.retain(informer.GetStore().ListKeys)
		}
	}()
	informer.RunWithContext(ctx)
}

func (f *follower) set(ctx context.Context, object any) {
	read, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	decoded, err := decode(read)
	if err != nil {
		f.report(ctx, err)
		f.delete(object)
		return
	}
	f.mutex.Lock()
	last := f.objects[decoded.Name]
	f.objects[decoded.Name] = decoded
	f.mutex.Unlock()
	f.changed(last != nil && last.UID == decoded.UID && last.Generation == decoded.Generation)
}

// decode returns an error if the CRD of a later version permits what this version can't decode.
func decode(read *unstructured.Unstructured) (*v1alpha1.DeviceAttributes, error) {
	decoded := &v1alpha1.DeviceAttributes{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(read.Object, decoded); err != nil {
		return nil, fmt.Errorf("decode DeviceAttributes %s: %w", read.GetName(), err)
	}
	decoded.ManagedFields = nil
	return decoded, nil
}

func (f *follower) delete(object any) {
	if name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		f.mutex.Lock()
		delete(f.objects, name)
		f.mutex.Unlock()
		f.changed(false)
	}
}

// refresh replaces an object by a version with another status. It does nothing if the object was deleted or changed meanwhile.
func (f *follower) refresh(ctx context.Context, read *unstructured.Unstructured) {
	if object := f.get(read.GetName(), read.GetUID()); object != nil && object.Generation == read.GetGeneration() {
		decoded, err := decode(read)
		if err != nil {
			f.report(ctx, err)
			return
		}
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if f.objects[decoded.Name] == object {
			f.objects[decoded.Name] = decoded
		}
	}
}

// retain removes the objects with other names. names is called while the objects can't change, so that it has each object that the
// watch has added.
func (f *follower) retain(names func() []string) {
	f.mutex.Lock()
	known := names()
	for name := range f.objects {
		if !slices.Contains(known, name) {
			delete(f.objects, name)
		}
	}
	f.mutex.Unlock()
	f.changed(false)
}

func (f *follower) clear() { f.retain(func() []string { return nil }) }
