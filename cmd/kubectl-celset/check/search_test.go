// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cmd/kubectl-celset/check"
	"github.com/celset/celset/internal/testing/corpus"
)

// TestSearches checks that there is no search for an allocated claim, and that the search treats devices in use as free.
func TestSearches(t *testing.T) {
	all := state("devices.size() == 6", nil, exactly("a", 6))
	require.Equal(t, check.SetFound, run(t, all).Objects[0].Constraints[0].Search)
	never := state("devices.size() == 7", nil, exactly("a", 6))
	report := run(t, never)
	require.Equal(t, check.NoSet, report.Objects[0].Constraints[0].Search)
	require.False(t, report.Valid(false))
	never.Claims[0].Status.Allocation = &resourceapi.AllocationResult{}
	report = run(t, never)
	require.Empty(t, report.Objects[0].Constraints[0].Search)
	require.True(t, report.Valid(false))
	report = run(t, state("true", nil, exactly("a", 7)))
	require.Equal(t, check.TooFewDevices, report.Objects[0].Constraints[0].Search)
	require.True(t, report.Valid(false))
	require.False(t, report.Valid(true))
	// The seven devices of request b don't exist. A set is found anyway, because the constraint covers only request a.
	require.Equal(t, check.SetFound, run(t, state("true", []string{"a"}, exactly("a", 1), exactly("b", 7))).Objects[0].Constraints[0].Search)
}

// TestFailuresAreFindings checks that a failed evaluation is reported. The expression fails because one device lacks the
// attribute.
func TestFailuresAreFindings(t *testing.T) {
	report := run(t, state("devices.all(d, d.attributes['o.example.com'].name == 'n')", nil, exactly("a", 6)))
	require.Len(t, report.Objects[0].Errors, 1)
	require.Contains(t, report.Objects[0].Errors[0].Message, "on node node-1 the expression fails: line 1, column ")
}

// TestBudgetEndsSearch checks that a search that exceeds its budget is not an error in the report.
func TestBudgetEndsSearch(t *testing.T) {
	s := state("devices.map(d, string(d.attributes['x.example.com'].index)).sort().join(',') == ''", nil, exactly("a", 8))
	slice := &s.Objects.Slices[0].Spec
	for i := range 40 {
		slice.Devices = append(slice.Devices, resourceapi.Device{Name: fmt.Sprint("e-", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"index": {IntValue: ptr.To(int64(i))},
		}})
	}
	report := run(t, s)
	require.Equal(t, check.NotKnown, report.Objects[0].Constraints[0].Search)
	require.Contains(t, report.Objects[0].Constraints[0].NotKnown, "budget")
	require.True(t, report.Valid(false))
}

func TestUnknownClasses(t *testing.T) {
	s := state("true", nil, exactly("a", 2))
	s.Claims[0].Spec.Devices.Requests[0].Exactly.DeviceClassName = "other"
	require.Empty(t, run(t, s).Objects[0].Errors, "it may be in another file")
	report, err := check.Run(t.Context(), s, func(any) bool { return true }, check.Options{AllClasses: true, Features: structured.Features{}})
	require.NoError(t, err)
	require.Equal(t, "spec.devices.requests[0].exactly.deviceClassName", report.Objects[0].Errors[0].Field)
}

// TestAnyExpression checks random expressions: each gets a report, even if no device has its attributes.
func TestAnyExpression(t *testing.T) {
	for _, e := range corpus.Expressions() {
		report := run(t, state(e.Text, nil, exactly("a", 3)))
		require.NotEmpty(t, report.Objects, e.Text)
	}
}
