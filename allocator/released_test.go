// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/availability"
	"github.com/celset/celset/internal/testing/cases"
)

// claimsThatHave are the claims behind what is in use in a scenario, one for each device or share.
func (s scenario) claimsThatHave() []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	add := func(result resourceapi.DeviceRequestAllocationResult) {
		result.Request, result.Driver, result.Pool = "r", driver, "pool-1"
		claims = append(claims, &resourceapi.ResourceClaim{Status: resourceapi.ResourceClaimStatus{
			Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{result}}},
		}})
	}
	for _, name := range s.inUse {
		add(resourceapi.DeviceRequestAllocationResult{Device: name})
	}
	for _, share := range s.shares {
		result := resourceapi.DeviceRequestAllocationResult{Device: share.device, ShareID: ptr.To(types.UID(share.device))}
		for name, amount := range share.consumed {
			if result.ConsumedCapacity == nil {
				result.ConsumedCapacity = map[resourceapi.QualifiedName]resource.Quantity{}
			}
			result.ConsumedCapacity[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
		}
		add(result)
	}
	return claims
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestWithoutIsAsIfNeverAllocated: what claims gave back can't be told from what nobody ever had.
func TestWithoutIsAsIfNeverAllocated(t *testing.T) {
	found, gained := 0, 0
	check := func(rt *rapid.T) {
		s := randomScenario(rt)
		in := s.claimsThatHave()
		var stay, leave []*resourceapi.ResourceClaim
		for _, claim := range in {
			if oneIn(rt, 2, "goes") {
				leave = append(leave, claim)
			} else {
				stay = append(stay, claim)
			}
		}
		s.inUse, s.shares = nil, nil
		all, rest := s.allocator(t), s.allocator(t)
		all.state = availability.NewState(AllocatedTo(in, all.features))
		rest.state = availability.NewState(AllocatedTo(stay, rest.features))
		want, wantErr := rest.Allocate(t.Context(), s.onNode(), s.apiClaims())
		// One after the other, and some of it asked about before.
		_, _ = all.Allocate(t.Context(), s.onNode(), s.apiClaims())
		without := all
		for _, claim := range leave {
			without = without.Without(claim)
		}
		got, err := without.Allocate(t.Context(), s.onNode(), s.apiClaims())
		require.Equal(t, devicesOf(want), devicesOf(got))
		require.Equal(t, text(wantErr), text(err))
		atOnce, err := all.Without(leave...).Allocate(t.Context(), s.onNode(), s.apiClaims())
		require.Equal(t, devicesOf(want), devicesOf(atOnce))
		require.Equal(t, text(wantErr), text(err))
		if want != nil {
			found++
			if before, _ := all.Allocate(t.Context(), s.onNode(), s.apiClaims()); before == nil {
				gained++
			}
		}
	}
	cases.CheckN(t, cases.Of(600, 3000), check)
	require.Positive(t, found)
	require.Positive(t, gained, "of %d that were found", found)
}
