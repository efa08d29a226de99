// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// TestSolveEager: an expression that fails on sets with which the claim can't be
// met.
func TestSolveEager(t *testing.T) {
	fails := "1 / " + index("devices[0]") + " == 1"
	notEqual := resourceapi.DeviceConstraint{DistinctAttribute: ptr.To(resourceapi.FullyQualifiedName(driver + "/index"))}
	withConstraint := func(claim *resourceapi.ResourceClaim, first bool) *resourceapi.ResourceClaim {
		if constraints := claim.Spec.Devices.Constraints; first {
			claim.Spec.Devices.Constraints = append([]resourceapi.DeviceConstraint{notEqual}, constraints...)
		} else {
			claim.Spec.Devices.Constraints = append(constraints, notEqual)
		}
		return claim
	}
	for name, test := range map[string]struct {
		claim *resourceapi.ResourceClaim
		// lazy and eager tell whether these are errors.
		lazy, eager bool
	}{
		"the claim can be met":            {celClaim(fails, nil, exactly("r", 1)), true, true},
		"a later request can't":           {celClaim(fails, []string{"r"}, exactly("r", 1), exactly("s", 2)), false, true},
		"the covered request can't":       {celClaim(fails, nil, exactly("r", 3)), false, false},
		"a later covered request can't":   {celClaim(fails, nil, exactly("r", 1), exactly("s", 2)), false, false},
		"all alternatives are covered":    {celClaim(fails, []string{"r", "s"}, exactly("r", 1), firstAvailable("s", 2, 3)), false, false},
		"an alternative is not covered":   {celClaim(fails, []string{"r", "s/n3"}, exactly("r", 1), firstAvailable("s", 2, 3)), false, true},
		"another constraint refuses":      {withConstraint(celClaim(fails, nil, exactly("r", 2)), true), false, false},
		"another constraint comes behind": {withConstraint(celClaim(fails, nil, exactly("r", 2)), false), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem([]*resourceapi.ResourceSlice{gpus("p", 0, 0)}, []*resourceapi.ResourceClaim{test.claim})
			p.Features.PrioritizedList = true
			for _, p.Eager = range []bool{false, true} {
				want := test.lazy
				if p.Eager {
					want = test.eager
				}
				_, err := Solve(p)
				require.Equal(t, want, err != nil, "eager: %t, error: %v", p.Eager, err)
			}
		})
	}
}

// firstAvailable makes a request whose alternatives, called "n2" for two devices
// and so on, want the given counts, or all devices for -1.
func firstAvailable(name string, counts ...int64) resourceapi.DeviceRequest {
	request := resourceapi.DeviceRequest{Name: name}
	for _, count := range counts {
		sub := resourceapi.DeviceSubRequest{
			Name: "n" + string(rune('0'+count)), DeviceClassName: "gpu",
			AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		}
		if count < 0 {
			sub.Name, sub.AllocationMode, sub.Count = "all", resourceapi.DeviceAllocationModeAll, 0
		}
		request.FirstAvailable = append(request.FirstAvailable, sub)
	}
	return request
}
