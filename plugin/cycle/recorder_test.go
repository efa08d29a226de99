// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cycle

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/plugintest"
)

// TestNothingIsKeptBetweenTurns checks that the Recorder keeps no lists after During has returned.
func TestNothingIsKeptBetweenTurns(t *testing.T) {
	ctx, h := plugintest.NewHandle(t, plugintest.Class(), plugintest.Slice(0))
	h.Start(ctx, t, plugintest.Class())
	recorder := NewRecorder(h, h.SharedDRAManager())
	seen := recorder.During(func() []resourceapi.DeviceRequestAllocationResult { return nil }, func() {
		_, err := recorder.SharedDRAManager().ResourceClaims().GatherAllocatedState()
		require.NoError(t, err)
		_, err = recorder.SharedDRAManager().ResourceSlices().ListWithDeviceTaintRules()
		require.NoError(t, err)
	})
	require.NotNil(t, seen.Allocated)
	require.Len(t, seen.slices, 1)
	require.Nil(t, recorder.seen)
	_, err := recorder.SharedDRAManager().ResourceClaims().GatherAllocatedState()
	require.NoError(t, err)
	require.Nil(t, recorder.seen)
}
