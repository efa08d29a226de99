// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package bruteforce

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

const driver = "gpu.example.com"

// gpus returns a slice with one device for each given value of the attribute "index".
func gpus(pool string, indexes ...int64) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: pool},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, AllNodes: ptr.To(true),
			Pool: resourceapi.ResourcePool{Name: pool, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i, index := range indexes {
		slice.Spec.Devices = append(slice.Spec.Devices, resourceapi.Device{
			Name: string(rune('a' + i)),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"index": {IntValue: ptr.To(index)},
			},
		})
	}
	return slice
}

func exactly(name string, count int64) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count}}
}

func all(name string) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeAll}}
}

// celClaim returns a claim with a CEL constraint that covers the named requests, or all requests if covered is empty.
func celClaim(expression string, covered []string, requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
	claim.Spec.Devices = resourceapi.DeviceClaim{
		Requests: requests,
		Constraints: []resourceapi.DeviceConstraint{{
			Requests: covered, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/c"))}},
		Config: []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{
				Driver:     "celset.dev",
				Parameters: runtime.RawExtension{Raw: []byte(`{"name": "c", "expression": "` + expression + `"}`)},
			}}}},
	}
	return claim
}

func attributeClaim(constraint resourceapi.DeviceConstraint, requests ...resourceapi.DeviceRequest) *resourceapi.ResourceClaim {
	claim := celClaim("", nil, requests...)
	claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{constraint}
	return claim
}

func index(d string) string { return d + ".attributes['" + driver + "'].index" }

func TestSolve(t *testing.T) {
	for name, test := range map[string]struct {
		slices    []*resourceapi.ResourceSlice
		claims    []*resourceapi.ResourceClaim
		allocated []string
		want      []string // device names of all claims, or nil without a solution
	}{
		"no claims": {want: []string{}},
		"first that fits": {
			slices: []*resourceapi.ResourceSlice{gpus("p", 0, 1, 2, 3)},
			claims: []*resourceapi.ResourceClaim{celClaim("devices.all(d, "+index("d")+" > 0)", nil, exactly("r", 2))},
			want:   []string{"b", "c"},
		},
		"no set fits": {
			slices: []*resourceapi.ResourceSlice{gpus("p", 0, 1, 2)},
			claims: []*resourceapi.ResourceClaim{celClaim("devices.exists(d, "+index("d")+" > 2)", nil, exactly("r", 2))},
		},
		"a set has one order": {
			slices: []*resourceapi.ResourceSlice{gpus("p", 0, 1)},
			claims: []*resourceapi.ResourceClaim{celClaim(index("devices[0]")+" > "+index("devices[1]"), nil, exactly("r", 2))},
		},
		"requests have every order": {
			slices: []*resourceapi.ResourceSlice{gpus("p", 0, 1)},
			claims: []*resourceapi.ResourceClaim{celClaim(index("devices[0]")+" > "+index("devices[1]"), nil, exactly("r", 1), exactly("s", 1))},
			want:   []string{"b", "a"},
		},
		"some requests": {
			slices: []*resourceapi.ResourceSlice{gpus("p", 0, 1, 2)},
			claims: []*resourceapi.ResourceClaim{celClaim(index("devices[0]")+" == 2", []string{"s"}, exactly("r", 1), exactly("s", 1))},
			want:   []string{"a", "c"},
		},
		"earlier claims give way": {
			slices: []*resourceapi.ResourceSlice{gpus("p", 0, 1)},
			claims: []*resourceapi.ResourceClaim{
				celClaim("true", nil, exactly("r", 1)),
				celClaim(index("devices[0]")+" == 0", nil, exactly("r", 1)),
			},
			want: []string{"b", "a"},
		},
		"all": {
			slices: []*resourceapi.ResourceSlice{gpus("p", 0, 1)},
			claims: []*resourceapi.ResourceClaim{celClaim("size(devices) == 2", nil, all("r"))},
			want:   []string{"a", "b"},
		},
		"all of nothing": {
			claims: []*resourceapi.ResourceClaim{celClaim("true", nil, all("r"))},
		},
		"identity": {
			slices: []*resourceapi.ResourceSlice{gpus("p", 0, 0)},
			claims: []*resourceapi.ResourceClaim{celClaim("devices[0] != devices[1] && devices[0] == devices[0]", nil, exactly("r", 2))},
			want:   []string{"a", "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			solution, err := Solve(problem(test.slices, test.claims, test.allocated...))
			require.NoError(t, err)
			require.Equal(t, test.want != nil, solution.Found)
			require.Empty(t, cmp.Diff(test.want, deviceNames(solution)))
		})
	}
}

func problem(slices []*resourceapi.ResourceSlice, claims []*resourceapi.ResourceClaim, allocated ...string) Problem {
	p := Problem{
		Node:    &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}},
		Slices:  slices,
		Claims:  claims,
		State:   structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()},
	}
	for _, device := range allocated {
		p.State.AllocatedDevices.Insert(structured.MakeDeviceID(driver, "p", device))
	}
	return p
}

func deviceNames(s Solution) []string {
	if !s.Found {
		return nil
	}
	names := []string{}
	for _, claim := range s.Claims {
		for _, pick := range claim {
			names = append(names, pick.Device)
		}
	}
	return names
}

func TestSolveErrors(t *testing.T) {
	slices := []*resourceapi.ResourceSlice{gpus("p", 0, 1, 2)}
	for name, test := range map[string]struct {
		claim      *resourceapi.ResourceClaim
		want       string
		evaluation int // 0 if the error does not come from an evaluation
	}{
		"first evaluation": {
			claim: celClaim("1 / "+index("devices[0]")+" == 1", nil, exactly("r", 1)),
			want:  "division by zero", evaluation: 1,
		},
		"second evaluation": {
			claim: celClaim("1 / (1 - "+index("devices[0]")+") == 2", nil, exactly("r", 1)),
			want:  "division by zero", evaluation: 2,
		},
		"not a bool": {
			claim: celClaim(index("devices[0]"), nil, exactly("r", 1)),
			want:  "not true or false", evaluation: 1,
		},
		"does not compile": {claim: celClaim("devices[", nil, exactly("r", 1)), want: "Syntax error"},
		"empty constraint": {claim: attributeClaim(resourceapi.DeviceConstraint{}, exactly("r", 1)), want: "empty"},
		"empty request":    {claim: celClaim("true", nil, resourceapi.DeviceRequest{Name: "r"}), want: "neither exactly nor firstAvailable"},
		"definition not found": {
			claim: attributeClaim(resourceapi.DeviceConstraint{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/other"))}, exactly("r", 1)),
			want:  "no definition of other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			solution, err := Solve(problem(slices, []*resourceapi.ResourceClaim{test.claim}))
			require.ErrorContains(t, err, test.want)
			require.False(t, solution.Found)
			var evaluation *EvaluationError
			if test.evaluation > 0 {
				require.ErrorAs(t, err, &evaluation)
				require.Equal(t, test.evaluation, evaluation.Evaluation)
			} else {
				require.NotErrorAs(t, err, &evaluation)
			}
		})
	}
}

// TestSolveEager checks the field Eager with an expression that fails for sets that violate another constraint of the claim.
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
		// lazy and eager are true if a search without and with Eager returns an error.
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

// firstAvailable returns a request with one alternative for each count. -1 means all devices. Names are "n2" and so on.
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
