// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/structured"
)

const (
	gatherInterval = time.Millisecond
	gatherTimeout  = 5 * time.Second
)

// gatherMaterial asks for what upstream's PreFilter was not seen to be given.
func (pl *DynamicResourcesCEL) gatherMaterial(ctx context.Context, seen material) (material, error) {
	var err error
	if seen.allocated == nil {
		if seen.allocated, err = pl.allocatedState(ctx); err != nil {
			return material{}, err
		}
	}
	if seen.slices == nil {
		seen.slices, err = pl.claims.ResourceSlices().ListWithDeviceTaintRules()
	}
	return seen, err
}

// allocatedState asks the claim tracker, which all profiles of the process
// share, what is allocated or about to be. The tracker gives up when allocations
// change while it looks; then it is asked again.
func (pl *DynamicResourcesCEL) allocatedState(ctx context.Context) (*structured.AllocatedState, error) {
	var state *structured.AllocatedState
	var conflict error
	err := wait.PollUntilContextTimeout(ctx, gatherInterval, gatherTimeout, true, func(context.Context) (bool, error) {
		state, conflict = pl.gather()
		return conflict == nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("gather allocation state: %w (last attempt: %w)", err, conflict)
	}
	return state, nil
}

func (pl *DynamicResourcesCEL) gather() (*structured.AllocatedState, error) {
	tracker := pl.claims.ResourceClaims()
	if pl.features.EnableDRAConsumableCapacity {
		return tracker.GatherAllocatedState()
	}
	devices, err := tracker.ListAllAllocatedDevices()
	if err != nil {
		return nil, err
	}
	return exclusively(devices), nil
}

// exclusively is the state in which nothing but whole devices is in use.
func exclusively(devices sets.Set[structured.DeviceID]) *structured.AllocatedState {
	return &structured.AllocatedState{
		AllocatedDevices:         devices,
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
}
