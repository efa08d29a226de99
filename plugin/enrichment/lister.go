// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"
)

// view is the result of a pass. It never changes.
type view struct {
	// drivers has the drivers whose devices may get attributes.
	drivers sets.Set[string]
	// enriched maps each ResourceSlice of these drivers to the ResourceSlice with the attributes. A ResourceSlice without further
	// attributes is mapped to itself.
	enriched map[*resourceapi.ResourceSlice]*resourceapi.ResourceSlice
}

// Manager returns a manager whose ResourceSlices have the attributes of the objects.
func (e *Enrichment) Manager(manager fwk.SharedDRAManager) fwk.SharedDRAManager {
	if e == nil || manager == nil {
		return manager
	}
	return enrichedManager{manager, e}
}

type enrichedManager struct {
	fwk.SharedDRAManager
	enrichment *Enrichment
}

// ResourceSlices implements [fwk.SharedDRAManager].
func (m enrichedManager) ResourceSlices() fwk.ResourceSliceLister {
	return enrichedSlices{m.SharedDRAManager.ResourceSlices(), m.enrichment}
}

type enrichedSlices struct {
	fwk.ResourceSliceLister
	enrichment *Enrichment
}

// ListWithDeviceTaintRules implements [fwk.ResourceSliceLister].
func (s enrichedSlices) ListWithDeviceTaintRules() ([]*resourceapi.ResourceSlice, error) {
	all, err := s.ResourceSliceLister.ListWithDeviceTaintRules()
	current := s.enrichment.current.Load()
	if err != nil || current == nil {
		return all, err
	}
	result, complete := current.show(all)
	if !complete {
		s.enrichment.request()
	}
	return result, nil
}

// poolID identifies a pool.
type poolID struct{ driver, name string }

func poolOf(slice *resourceapi.ResourceSlice) poolID {
	return poolID{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// show returns the ResourceSlices with their attributes. complete is false if the view lacks a ResourceSlice.
func (v *view) show(all []*resourceapi.ResourceSlice) (result []*resourceapi.ResourceSlice, complete bool) {
	result = make([]*resourceapi.ResourceSlice, 0, len(all))
	var missing sets.Set[poolID]
	for _, slice := range all {
		if enriched, ok := v.enriched[slice]; ok {
			slice = enriched
		} else if v.drivers.Has(slice.Spec.Driver) {
			if missing == nil {
				missing = sets.New[poolID]()
			}
			missing.Insert(poolOf(slice))
		}
		result = append(result, slice)
	}
	for i, slice := range result {
		if missing.Len() > 0 && missing.Has(poolOf(slice)) {
			result[i] = incomplete(slice)
		}
	}
	return result, missing.Len() == 0
}

// incomplete returns a ResourceSlice without devices, which makes its pool incomplete. All ResourceSlices of a pool with a missing
// one are replaced in this way. If they were left out instead, devices of an older generation of the pool could be allocated, and
// a request for all devices of a node would be allocated without the devices of the pool.
func incomplete(slice *resourceapi.ResourceSlice) *resourceapi.ResourceSlice {
	result := &resourceapi.ResourceSlice{TypeMeta: slice.TypeMeta, ObjectMeta: slice.ObjectMeta, Spec: slice.Spec}
	result.Spec.Devices, result.Spec.SharedCounters = nil, nil
	result.Spec.Pool.ResourceSliceCount++
	if ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		// Without devices, nothing would select nodes.
		result.Spec.PerDeviceNodeSelection, result.Spec.AllNodes = nil, ptr.To(true)
	}
	return result
}
