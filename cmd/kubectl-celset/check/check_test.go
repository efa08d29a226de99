// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/check"
	"github.com/celset/celset/internal/clusterstate"
)

const driver = "x.example.com"

func definition(name, expression string) resourceapi.DeviceConfiguration {
	raw, _ := json.Marshal(&v1alpha1.CELDeviceConstraint{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
		Name:     name, Expression: expression,
	})
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}

func exactly(name string, count int64) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: "x", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}}
}

func all(name string) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: "x", AllocationMode: resourceapi.DeviceAllocationModeAll,
	}}
}

func firstOf(name string, counts ...int64) resourceapi.DeviceRequest {
	request := resourceapi.DeviceRequest{Name: name}
	for i, count := range counts {
		request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
			Name: fmt.Sprint("alt", i), DeviceClassName: "x", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
		})
	}
	return request
}

// state returns a node with six devices, one of them allocated, and a claim with the requests. The claim has a constraint with
// the expression for the covered requests.
func state(expression string, covered []string, requests ...resourceapi.DeviceRequest) *clusterstate.State {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	claim.Spec.Devices = resourceapi.DeviceClaim{
		Requests:    requests,
		Constraints: []resourceapi.DeviceConstraint{{Requests: covered, MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/c"))}},
		Config:      []resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: definition("c", expression)}},
	}
	taken := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "taken"}}
	taken.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Driver: driver, Pool: "node-1", Device: "d-0"}},
	}}
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, NodeName: ptr.To("node-1"), Pool: resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range 6 {
		device := resourceapi.Device{Name: fmt.Sprint("d-", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"index":              {IntValue: ptr.To(int64(i))},
			"o.example.com/name": {StringValue: ptr.To("n")},
		}}
		if i == 5 {
			device.Attributes["index"] = resourceapi.DeviceAttribute{StringValue: ptr.To("5")}
			delete(device.Attributes, "o.example.com/name")
		}
		slice.Spec.Devices = append(slice.Spec.Devices, device)
	}
	return clusterstate.New(&clusterstate.Objects{
		Claims:  []*resourceapi.ResourceClaim{claim, taken},
		Classes: []*resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}},
		Slices:  []*resourceapi.ResourceSlice{slice},
	})
}

func run(t *testing.T, s *clusterstate.State) *check.Report {
	t.Helper()
	report, err := check.Run(t.Context(), s, func(any) bool { return true },
		check.Options{Count: 3, Features: structured.Features{PrioritizedList: true}})
	require.NoError(t, err)
	return report
}

func TestSizesAndSets(t *testing.T) {
	for name, test := range map[string]struct {
		covered    []string
		requests   []resourceapi.DeviceRequest
		devices    []int
		sets, free int64
	}{
		"one request":                {nil, []resourceapi.DeviceRequest{exactly("a", 2)}, []int{2}, 15, 10},
		"two requests":               {nil, []resourceapi.DeviceRequest{exactly("a", 2), exactly("b", 1)}, []int{3}, 15 * 6, 10 * 5},
		"one of two":                 {[]string{"b"}, []resourceapi.DeviceRequest{exactly("a", 2), exactly("b", 1)}, []int{1}, 6, 5},
		"too many":                   {nil, []resourceapi.DeviceRequest{exactly("a", 6)}, []int{6}, 1, 0},
		"all":                        {nil, []resourceapi.DeviceRequest{all("a")}, []int{6}, 1, 0},
		"alternatives":               {nil, []resourceapi.DeviceRequest{firstOf("a", 4, 2)}, []int{2, 4}, 15 + 15, 5 + 10},
		"one alternative is covered": {[]string{"a/alt1", "b"}, []resourceapi.DeviceRequest{firstOf("a", 4, 2), exactly("b", 1)}, []int{1, 3}, 16 * 6, 11 * 5},
	} {
		t.Run(name, func(t *testing.T) {
			report := run(t, state("size(devices) > 0", test.covered, test.requests...))
			require.True(t, report.Valid(false))
			require.Len(t, report.Objects, 1)
			constraint := report.Objects[0].Constraints[0]
			require.Equal(t, test.devices, constraint.Devices)
			require.False(t, constraint.Assumed)
			require.Len(t, constraint.Nodes, 1)
			require.Equal(t, 6, constraint.Nodes[0].Candidates)
			require.Equal(t, 5, constraint.Nodes[0].Free)
			require.Equal(t, fmt.Sprint(test.sets), constraint.Nodes[0].Sets.String())
			require.Equal(t, fmt.Sprint(test.free), constraint.Nodes[0].FreeSets.String())
		})
	}
}

func TestWhatIsReadAndUnderstood(t *testing.T) {
	expression := "devices.all(d, d.attributes['x.example.com'].index < 5) &&\n" +
		"devices.map(d, d.attributes['o.example.com'].name).join(',') != 'a' &&\n" +
		"(devices.size() == 2 || devices.map(d, d.driver).join(',') == 'b')"
	constraint := run(t, state(expression, nil, exactly("a", 2))).Objects[0].Constraints[0]
	require.Empty(t, cmp.Diff([]check.Attribute{
		{Domain: "o.example.com", Name: "name", Types: map[string]int{"string": 5}, Missing: 1},
		{Domain: driver, Name: "index", Types: map[string]int{"int": 5, "string": 1}},
	}, constraint.Reads))
	require.False(t, constraint.ReadsAll)
	require.True(t, constraint.Pruned)
	require.Len(t, constraint.Conjuncts, 3)
	require.Equal(t, check.Understood, constraint.Conjuncts[0].Understanding)
	require.Equal(t, check.NotUnderstood, constraint.Conjuncts[1].Understanding)
	require.Equal(t, 2, constraint.Conjuncts[1].Line)
	require.Equal(t, check.Understood, constraint.Conjuncts[2].Understanding, "true for two devices whatever comes after")
	require.Positive(t, constraint.Cost)
	require.Less(t, constraint.Cost, constraint.CostLimit)
}

// TestTooExpensiveToRead checks an expression whose evaluation may exceed the cost limit. The report must say that the search
// tries each set, although it understands each conjunct.
func TestTooExpensiveToRead(t *testing.T) {
	const pair = "a.driver.contains(b.driver)"
	expression := "devices.all(a, devices.all(b, " + strings.Repeat(pair+" && ", 300) + "true))"
	for count, expensive := range map[int64]bool{2: false, 32: true} {
		constraint := run(t, state(expression, nil, exactly("a", count))).Objects[0].Constraints[0]
		require.Equal(t, expensive, constraint.TooExpensive)
		require.Equal(t, !expensive, constraint.Pruned)
		require.Equal(t, check.Understood, constraint.Conjuncts[0].Understanding)
	}
}

func preference(name, expression string, requests ...string) resourceapi.DeviceConfiguration {
	raw, _ := json.Marshal(&v1alpha1.CELDevicePreference{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.PreferenceKind},
		Name:     name, Type: v1alpha1.PreferenceTypeExpression, Expression: expression, Requests: requests,
	})
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}

// preferring returns two reports: on a claim with the requests and the preference own, and on a class with the preference
// ofClass.
func preferring(t *testing.T, own, ofClass resourceapi.DeviceConfiguration, requests ...resourceapi.DeviceRequest) (claim, class check.Object) {
	t.Helper()
	s := state("size(devices) > 0", nil, requests...)
	s.Claims[0].Spec.Devices.Config = append(s.Claims[0].Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: own})
	s.Objects.Classes[0].Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: ofClass}}
	report := run(t, s)
	require.Len(t, report.Objects, 2)
	return report.Objects[1], report.Objects[0]
}

func TestPreferences(t *testing.T) {
	const indices = "devices.map(d, d.attributes['x.example.com'].index)"
	const unreadable = "devices.map(d, d.driver).join(',').size()"
	claim, class := preferring(t, preference("p", indices+".max()", "a"), preference("q", unreadable), exactly("a", 2), firstOf("b", 3, 1))
	require.Len(t, claim.Constraints, 1, "preferences are no constraints")
	require.Len(t, claim.Warnings, 1, "of the order")
	require.Len(t, claim.Preferences, 3)
	p := claim.Preferences[0]
	require.Equal(t, "ResourceClaim ns/c spec.devices.config[1]", p.Source)
	require.Equal(t, []int{2}, p.Devices)
	require.True(t, p.Read)
	require.Equal(t, []check.Attribute{{Domain: driver, Name: "index", Types: map[string]int{"int": 5, "string": 1}}}, p.Reads)
	require.Equal(t, "10", p.Nodes[0].FreeSets.String())
	for i, q := range claim.Preferences[1:] {
		require.Equal(t, "DeviceClass x spec.config[0]", q.Source)
		require.Equal(t, []string{fmt.Sprint("b/alt", i)}, q.Requests, "the claim's own is about the other request")
		require.Equal(t, "int", q.Type)
		require.False(t, q.Read)
		require.Positive(t, q.Cost)
	}
	require.Equal(t, []int{3}, class.Preferences[0].Devices)
	require.True(t, class.Preferences[0].Assumed)
	var text strings.Builder
	require.NoError(t, (&check.Report{Objects: []check.Object{class, claim}}).Print(&text))
	require.Contains(t, text.String(), "search     evaluates one set after the other until the budget is used up\n")
}

// TestPlainClaims checks that a claim without constraints gets no error about a missing class, even if there are findings on
// its device selectors.
func TestPlainClaims(t *testing.T) {
	plain := exactly("r", 1)
	plain.Exactly.DeviceClassName = "later"
	plain.Exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.attributes['x.example.com/index'].int > 1"}}}
	for name, isPlain := range map[string]bool{"plain": true, "constrained": false} {
		t.Run(name, func(t *testing.T) {
			s := state("devices.size() > 0", nil, plain)
			if isPlain {
				s.Claims[0].Spec.Devices.Constraints, s.Claims[0].Spec.Devices.Config = nil, nil
			}
			report, err := check.Run(t.Context(), s, func(any) bool { return true }, check.Options{AllClasses: true})
			require.NoError(t, err)
			require.Len(t, report.Objects, 1)
			require.Equal(t, !isPlain, len(report.Objects[0].Errors) > 0, report.Objects[0].Errors)
			require.Contains(t, report.Objects[0].Warnings[len(report.Objects[0].Warnings)-1].Message, `no device can have the domain "x.example.com/index"`)
		})
	}
}
