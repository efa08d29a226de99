// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"context"
	"maps"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/deviceattributes"
)

// pass enriches all ResourceSlices and publishes the result. It returns true if the result differs from the last one. Package
// deviceattributes remembers the ResourceSlices of the last pass, so a pass without a change only compares.
func (e *Enrichment) pass(ctx context.Context) (changed bool) {
	objects := e.follower.list()
	if len(objects) == 0 && e.current.Load() == nil {
		return false
	}
	end := e.Metrics.ObserveEnrichment()
	next, report, err := e.enrich(ctx, objects)
	if err != nil {
		// The result of the last pass stays. ResourceSlices that it lacks make their pools incomplete.
		if ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not add the attributes of DeviceAttributes to devices")
		}
		return true
	}
	end()
	last := e.current.Swap(next)
	e.reporter.set(report)
	drivers := changedDrivers(last, next)
	e.wakers.note(drivers)
	return len(drivers) > 0
}

// enrich returns the view for the objects, or nil if there are no objects.
func (e *Enrichment) enrich(ctx context.Context, objects []*v1alpha1.DeviceAttributes) (*view, *deviceattributes.Report, error) {
	generations := make(map[types.UID]int64, len(objects))
	for _, object := range objects {
		generations[object.UID] = object.Generation
	}
	if !maps.Equal(generations, e.compiled) {
		if err := e.enricher.Set(ctx, objects); err != nil {
			return nil, nil, err
		}
		e.compiled = generations
	}
	if len(objects) == 0 {
		// This call forgets the ResourceSlices of the last pass.
		_, _, err := e.enricher.Enrich(ctx, nil, nil)
		return nil, nil, err
	}
	e.watching.Do(func() { e.watch(ctx) })
	all, err := e.Slices.ListWithDeviceTaintRules()
	if err != nil {
		return nil, nil, err
	}
	enriched, report, err := e.enricher.Enrich(ctx, all, e.labels)
	if err != nil {
		return nil, nil, err
	}
	result := &view{drivers: sets.New[string](), enriched: map[*resourceapi.ResourceSlice]*resourceapi.ResourceSlice{}}
	for _, object := range objects {
		of := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: object.Spec.Driver}}
		if e.enricher.Touches(of) {
			result.drivers.Insert(object.Spec.Driver)
		}
	}
	for i, slice := range all {
		if result.drivers.Has(slice.Spec.Driver) {
			result.enriched[slice] = enriched[i]
		}
	}
	return result, report, nil
}

// labels implements [deviceattributes.NodeLabels].
func (e *Enrichment) labels(name string) (map[string]string, bool) {
	node, err := e.Informers.Core().V1().Nodes().Lister().Get(name)
	if err != nil {
		return nil, false
	}
	return node.Labels, true
}

// changedDrivers returns the drivers with a ResourceSlice that two views show differently.
func changedDrivers(before, after *view) sets.Set[string] {
	result := sets.New[string]()
	if before == nil {
		before = &view{}
	}
	if after == nil {
		after = &view{}
	}
	for slice, shown := range after.enriched {
		was, ok := before.enriched[slice]
		if !ok && !before.drivers.Has(slice.Spec.Driver) {
			was = slice
		}
		if was != shown {
			result.Insert(slice.Spec.Driver)
		}
	}
	for slice, shown := range before.enriched {
		if !after.drivers.Has(slice.Spec.Driver) && shown != slice {
			result.Insert(slice.Spec.Driver)
		}
	}
	// The ResourceSlices of these drivers were incomplete.
	for driver := range before.drivers.Difference(after.drivers) {
		if before.enriched == nil {
			result.Insert(driver)
		}
	}
	return result
}

// watch requests a pass when a ResourceSlice of a driver with objects changes, and when a node changes that matters to an object.
func (e *Enrichment) watch(ctx context.Context) {
	handle := func(informer cache.SharedIndexInformer, matters func(before, after any) bool) {
		look := func(before, after any) {
			if matters(before, after) {
				e.request()
			}
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(object any) { look(nil, object) }, UpdateFunc: look, DeleteFunc: func(object any) { look(object, nil) },
		})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not watch what DeviceAttributes depend on; changes have an effect after a delay")
		}
	}
	// The domains of the attributes depend on the ResourceSlices of all drivers.
	handle(e.Informers.Resource().V1().ResourceSlices().Informer(), func(_, _ any) bool { return !e.follower.isEmpty() })
	handle(e.Informers.Core().V1().Nodes().Informer(), func(before, after any) bool {
		if e.follower.isEmpty() {
			return false
		}
		old, wasNode := before.(*v1.Node)
		node, isNode := after.(*v1.Node)
		return !wasNode || !isNode || !maps.Equal(old.Labels, node.Labels) && e.enricher.Affected(old.Labels, node.Labels)
	})
}
