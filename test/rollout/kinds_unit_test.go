// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// version is a version of a claim of plain pods with devices of a ring.
func version(name string, devices ...int) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{kindLabel: "plain"}}}
	if len(devices) > 0 {
		claim.Status.Allocation = &resourceapi.AllocationResult{}
	}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Driver: ring.Drivers()[0], Pool: "node", Device: fmt.Sprintf("mla-%d", device),
		})
	}
	return claim
}

// The ledger is shown what no set of a kind is.
func TestSetsAreJudged(t *testing.T) {
	require.Empty(t, judge(version("a", 0, 1)))
	require.Equal(t, "has [mla-0], which is no set of a plain", judge(version("a", 0)))
	elsewhere := version("a", 0, 1)
	elsewhere.Status.Allocation.Devices.Results[1].Pool = "other"
	require.Contains(t, judge(elsewhere), "in pool other")
}

func TestKindsKnowTheirSets(t *testing.T) {
	require.True(t, ringKind.fits([]string{"mla-0", "mla-2", "mla-3", "mla-4"}))
	require.False(t, ringKind.fits([]string{"mla-0", "mla-1", "mla-3", "mla-4", "mla-6", "mla-7"}), "the expression sees an end where the ring closes")
	require.True(t, blockKind.fits([]string{"mesh-0", "mesh-1", "mesh-2", "mesh-3", "mesh-4"}))
	require.False(t, blockKind.fits([]string{"mesh-0", "mesh-1", "mesh-2", "mesh-3", "mesh-5"}))
	require.True(t, plainKind.fits([]string{"mla-0", "mla-7"}))
	require.False(t, plainKind.fits([]string{"mla-0"}))
}
