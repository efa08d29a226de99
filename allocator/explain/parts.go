// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
)

// pool identifies a pool of a driver.
type pool struct{ driver, name string }

func poolOf(slice *resourceapi.ResourceSlice) pool {
	return pool{slice.Spec.Driver, slice.Spec.Pool.Name}
}

// parts finds the slices and claims of a problem that concern a node. Without it, each node takes a pass over all slices and
// claims, so the time for all nodes would be quadratic. All indices are in ascending order, because the order matters.
type parts struct {
	allSlices []*resourceapi.ResourceSlice
	allClaims []*resourceapi.ResourceClaim
	// named maps each node name to the slices with this name in the field nodeName. The name is empty for slices without it.
	named map[string][]int
	// slices and claims map each pool to its slices, and to the allocated claims with devices of the pool.
	slices, claims map[pool][]int
}

func newParts(of *allocator.Problem) *parts {
	p := &parts{allSlices: of.Slices, allClaims: of.Allocated, named: map[string][]int{}, slices: map[pool][]int{}, claims: map[pool][]int{}}
	for i, slice := range of.Slices {
		name := ptr.Deref(slice.Spec.NodeName, "")
		p.named[name] = append(p.named[name], i)
		p.slices[poolOf(slice)] = append(p.slices[poolOf(slice)], i)
	}
	for i, claim := range of.Allocated {
		for _, result := range resultsOf(claim) {
			key := pool{result.Driver, result.Pool}
			if known := p.claims[key]; len(known) == 0 || known[len(known)-1] != i {
				p.claims[key] = append(known, i)
			}
		}
	}
	return p
}

// slicesFor returns the slices that mayBeFor selects.
func (p *Problem) slicesFor(node *v1.Node) []*resourceapi.ResourceSlice {
	if p.parts == nil {
		return only(p.Slices, func(slice *resourceapi.ResourceSlice) bool { return mayBeFor(slice, node) })
	}
	return chosen(p.parts.allSlices, slices.Concat(p.parts.named[""], p.parts.named[node.Name]))
}

// ofPools returns the slices of pools, and the allocated claims with devices of pools.
func (p *Problem) ofPools(pools sets.Set[pool]) ([]*resourceapi.ResourceSlice, []*resourceapi.ResourceClaim) {
	if p.parts == nil {
		ofPool := func(r resourceapi.DeviceRequestAllocationResult) bool { return pools.Has(pool{r.Driver, r.Pool}) }
		return only(p.Slices, func(slice *resourceapi.ResourceSlice) bool { return pools.Has(poolOf(slice)) }),
			only(p.Allocated, func(claim *resourceapi.ResourceClaim) bool { return slices.ContainsFunc(resultsOf(claim), ofPool) })
	}
	var ofSlices, ofClaims []int
	for pool := range pools {
		ofSlices, ofClaims = append(ofSlices, p.parts.slices[pool]...), append(ofClaims, p.parts.claims[pool]...)
	}
	return chosen(p.parts.allSlices, ofSlices), chosen(p.parts.allClaims, ofClaims)
}

// chosen returns the objects with the given indices in the order of all objects. An index may occur several times.
func chosen[T any](all []T, indices []int) []T {
	sorted := slices.Compact(slices.Sorted(slices.Values(indices)))
	result := make([]T, len(sorted))
	for i, index := range sorted {
		result[i] = all[index]
	}
	return result
}

func only[T any](all []T, wanted func(T) bool) (result []T) {
	for _, one := range all {
		if wanted(one) {
			result = append(result, one)
		}
	}
	return result
}
