// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watching

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/clusterstate/reading"
)

// pace is the minimum time between two revisions.
const pace = 500 * time.Millisecond

// Options select the objects.
type Options struct {
	// Namespace is the namespace to fall back to, if RBAC forbids a kind in all namespaces.
	Namespace string
	// Only is set if pods, templates and groups of other namespaces are left out. Claims and running pods of other namespaces
	// stay, because they use devices and other resources.
	Only bool
	// Others are further custom resources, for [Watcher.List]. The value is true if one namespace of the resource is enough.
	Others map[schema.GroupVersionResource]bool
	// Retry is the time until the watcher tries a kind again, if RBAC forbids the kind or the API server lacks it. Zero means a
	// minute. If RBAC allows list but not watch, the kind is read again after this time.
	Retry time.Duration
}

// Watcher follows the objects of a cluster. Several goroutines may use it.
type Watcher struct {
	options Options
	kinds   []*kind
	// others maps the resources of Options.Others to their kinds.
	others  map[schema.GroupVersionResource]*kind
	running sync.WaitGroup

	// dirty has an element if the objects have changed since the last revision.
	dirty chan struct{}
	// name is the beginning of all revisions. It differs between two runs of the program.
	name string

	mutex    sync.Mutex
	revision int
	changed  chan struct{}
}

// Start begins to follow the objects, until ctx ends.
func Start(ctx context.Context, config *rest.Config, options Options) (*Watcher, error) {
	client, clientErr := kubernetes.NewForConfig(config)
	dynamicClient, dynamicErr := dynamic.NewForConfig(config)
	if err := errors.Join(clientErr, dynamicErr); err != nil {
		return nil, err
	}
	if options.Retry == 0 {
		options.Retry = slowly
	}
	w := &Watcher{
		options: options,
		others:  map[schema.GroupVersionResource]*kind{},
		dirty:   make(chan struct{}, 1),
		name:    fmt.Sprintf("%x", time.Now().UnixNano()),
		changed: make(chan struct{}),
	}
	w.add(client, dynamicClient)
	// The reflectors log errors, which are warnings here.
	ctx = klog.NewContext(ctx, logr.Discard())
	for _, k := range w.kinds {
		w.running.Go(func() { k.run(ctx) })
	}
	w.running.Go(func() { w.revise(ctx) })
	return w, nil
}

// add adds the kinds.
func (w *Watcher) add(client kubernetes.Interface, dynamicClient dynamic.Interface) {
	for _, of := range []reading.Kind{
		reading.Claims(client), reading.Templates(client), reading.Classes(client), reading.Slices(client),
		reading.TaintRules(client), reading.Nodes(client), reading.Groups(client),
	} {
		// Claims of all namespaces have devices.
		w.follow(client.Discovery(), of, trimmed, w.options.Only && of.Namespaced && of.Resource.Resource != "resourceclaims")
	}
	w.follow(client.Discovery(), reading.Pods(client), w.trimPod, false)
	w.follow(client.Discovery(), custom(dynamicClient, "DeviceAttributes", attributesResource), toAttributes, false)
	for resource, namespaced := range w.options.Others {
		of := custom(dynamicClient, resource.GroupResource().String(), resource)
		of.Namespaced = namespaced
		w.others[resource] = w.follow(client.Discovery(), of, trimmed, w.options.Only && namespaced)
	}
}

var attributesResource = v1alpha1.SchemeGroupVersion.WithResource("deviceattributes")

// custom returns a kind of custom resources.
func custom(client dynamic.Interface, name string, resource schema.GroupVersionResource) reading.Kind {
	in := client.Resource(resource)
	return reading.Kind{
		Name: name, Resource: resource, Optional: true,
		List: func(ctx context.Context, namespace string, options metav1.ListOptions) (runtime.Object, error) {
			return in.Namespace(namespace).List(ctx, options)
		},
		Watch: func(ctx context.Context, namespace string, options metav1.ListOptions) (watch.Interface, error) {
			return in.Namespace(namespace).Watch(ctx, options)
		},
	}
}

// toAttributes converts an object to DeviceAttributes.
func toAttributes(o object) (object, error) {
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	decoded := &v1alpha1.DeviceAttributes{}
	if err := json.Unmarshal(raw, decoded); err != nil {
		return nil, fmt.Errorf("DeviceAttributes %s is left out: %w", o.GetName(), err)
	}
	return trimmed(decoded)
}

// follow adds a kind.
func (w *Watcher) follow(api discovery.DiscoveryInterface, of reading.Kind, trim func(object) (object, error), only bool) *kind {
	k := &kind{
		Kind:  of,
		store: &store{trim: trim, changed: w.touch, entries: map[key]entry{}},
		only:  only, retry: w.options.Retry, tried: make(chan struct{}),
		missing: func() (bool, error) { return missing(api, of.Resource) },
	}
	if of.Namespaced {
		k.namespace = w.options.Namespace
	}
	w.kinds = append(w.kinds, k)
	return k
}

// missing reports whether the API server lacks a resource. An API server forbids the resources that it lacks, too, if RBAC does
// not allow them.
func missing(api discovery.DiscoveryInterface, resource schema.GroupVersionResource) (bool, error) {
	groups, err := api.ServerGroups()
	if err != nil {
		return false, err
	}
	for _, group := range groups.Groups {
		if group.Name != resource.Group {
			continue
		}
		// Package reading converts the versions of some kinds, so any version counts.
		for _, version := range group.Versions {
			list, err := api.ServerResourcesForGroupVersion(version.GroupVersion)
			if err != nil && !apierrors.IsNotFound(err) {
				return false, err
			}
			if err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }) {
				return false, nil
			}
		}
	}
	return true, nil
}

// touch notes that the objects have changed.
func (w *Watcher) touch() {
	select {
	case w.dirty <- struct{}{}:
	default:
	}
}

// revise increases the revision after changes. Between two revisions, it waits for the time pace.
func (w *Watcher) revise(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.dirty:
		}
		w.mutex.Lock()
		w.revision++
		close(w.changed)
		w.changed = make(chan struct{})
		w.mutex.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-time.After(pace):
		}
	}
}

// Revision returns the current revision, and a channel that is closed when there is another revision.
func (w *Watcher) Revision() (revision string, changed <-chan struct{}) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return fmt.Sprintf("%s-%d", w.name, w.revision), w.changed
}

// Synced waits until each kind was read, or could not be read.
func (w *Watcher) Synced(ctx context.Context) error {
	for _, k := range w.kinds {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-k.tried:
		}
	}
	return nil
}

// Wait waits until all goroutines have ended, after the context of [Start].
func (w *Watcher) Wait() { w.running.Wait() }

// OthersVersion returns a text that changes with the objects of the resources in [Options.Others].
func (w *Watcher) OthersVersion() string {
	var versions []string
	for _, k := range w.kinds {
		if w.others[k.Resource] == k {
			versions = append(versions, fmt.Sprint(k.count(), k.current()))
		}
	}
	return strings.Join(versions, ", ")
}

// List returns the objects of one of the resources in [Options.Others].
func (w *Watcher) List(resource schema.GroupVersionResource) (*unstructured.UnstructuredList, error) {
	k := w.others[resource]
	if k == nil {
		return nil, fmt.Errorf("resource %s is not followed", resource)
	}
	s := k.current()
	switch {
	case s.absent:
		return nil, apierrors.NewNotFound(resource.GroupResource(), "")
	case s.list != nil:
		return nil, s.list
	}
	list := &unstructured.UnstructuredList{}
	k.each(func(o object) {
		if one, ok := o.(*unstructured.Unstructured); ok {
			list.Items = append(list.Items, *one)
		}
	})
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return compare(&a, &b) })
	return list, nil
}
