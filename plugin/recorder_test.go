// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// counted counts how often the names of all devices in use, and all slices, are copied.
type counted struct {
	fwk.SharedDRAManager
	states, lists atomic.Int64
}

func (c *counted) ResourceClaims() fwk.ResourceClaimTracker {
	return countedClaims{c.SharedDRAManager.ResourceClaims(), c}
}

func (c *counted) ResourceSlices() fwk.ResourceSliceLister {
	return countedSlices{c.SharedDRAManager.ResourceSlices(), c}
}

type countedClaims struct {
	fwk.ResourceClaimTracker
	counted *counted
}

func (c countedClaims) GatherAllocatedState() (*structured.AllocatedState, error) {
	c.counted.states.Add(1)
	return c.ResourceClaimTracker.GatherAllocatedState()
}

func (c countedClaims) ListAllAllocatedDevices() (sets.Set[structured.DeviceID], error) {
	c.counted.states.Add(1)
	return c.ResourceClaimTracker.ListAllAllocatedDevices()
}

type countedSlices struct {
	fwk.ResourceSliceLister
	counted *counted
}

func (s countedSlices) ListWithDeviceTaintRules() ([]*resourceapi.ResourceSlice, error) {
	s.counted.lists.Add(1)
	return s.ResourceSliceLister.ListWithDeviceTaintRules()
}

// Our allocator costs no second copy of what upstream's was made from, with and without
// shares of devices.
func TestNothingIsCopiedTwice(t *testing.T) {
	for _, shares := range []bool{false, true} {
		objects := []runtime.Object{class(), slice(0, 1, 2), constrain(t, claim(2), "two", "size(devices) == 2")}
		ctx, h := newHandle(t, objects...)
		manager := &counted{SharedDRAManager: h.manager}
		h.manager = manager
		fts := features()
		fts.EnableDRAConsumableCapacity = shares
		pl, err := newPlugin(ctx, nil, h, fts, true, newMetrics(t), newShared())
		require.NoError(t, err)
		h.start(ctx, t, objects...)
		manager.states.Store(0)
		manager.lists.Store(0)

		state := framework.NewCycleState()
		_, status := pl.PreFilter(ctx, state, pod(), nil)
		require.True(t, status.IsSuccess(), "%v", status)
		require.NotNil(t, pl.oursIn(state))
		require.EqualValues(t, 1, manager.states.Load())
		require.EqualValues(t, 1, manager.lists.Load())

		// Between the scheduling cycles nothing is kept.
		require.Nil(t, pl.watched.seen)
	}
}
