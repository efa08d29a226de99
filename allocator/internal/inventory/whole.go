// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Whole is a pool as no single node sees it: the latest generation of its slices, for whichever nodes
// they are. All of published must be slices of the pool. It is nil if there are none.
//
// That no node gets two devices with one name is not looked at, since that is asked for each node.
func Whole(features structured.Features, id ID, published []*resourceapi.ResourceSlice) *Pool {
	pools := map[ID][]*resourceapi.ResourceSlice{}
	for _, slice := range published {
		if supported(features, slice) {
			addLatest(pools, slice)
		}
	}
	latest := pools[id]
	if len(latest) == 0 {
		return nil
	}
	p := &Pool{ID: id}
	if p.Invalid = contradictoryCount(latest); p.Invalid != "" {
		p.elsewhere = latest
		return p
	}
	if p.Incomplete = !isComplete(latest); p.Incomplete {
		p.elsewhere = latest
		return p
	}
	p.fill(features, nil, latest)
	if p.Invalid != "" {
		p.elsewhere = latest
	}
	return p
}
