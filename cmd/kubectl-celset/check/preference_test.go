// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cmd/kubectl-celset/check"
)

func preference(name, expression string, requests ...string) resourceapi.DeviceConfiguration {
	raw, _ := json.Marshal(&v1alpha1.CELDevicePreference{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.PreferenceKind},
		Name:     name, Expression: expression, Requests: requests,
	})
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}

// preferring is the report on a claim with the requests and a preference, and on a class with one.
func preferring(t *testing.T, own, ofClass resourceapi.DeviceConfiguration, requests ...resourceapi.DeviceRequest) (claim, class check.Object) {
	t.Helper()
	s := state("true", nil, requests...)
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
	require.Contains(t, text.String(), "search     not understood: one set after the other is evaluated, as many as the budget allows for\n")
}

// TestTooExpensivePreference: values that one evaluation may not come to tell nothing of sets.
func TestTooExpensivePreference(t *testing.T) {
	const pair = "a.driver.contains(b.driver)"
	expression := "devices.all(a, devices.all(b, " + strings.Repeat(pair+" && ", 300) + "true)) ? 1 : 0"
	for count, expensive := range map[int64]bool{2: false, 32: true} {
		claim, _ := preferring(t, preference("p", expression), preference("q", "1"), exactly("a", count))
		require.Equal(t, !expensive, claim.Preferences[0].Read)
		require.Equal(t, expensive, claim.Preferences[0].Cost > claim.Preferences[0].CostLimit)
	}
}

func TestWrongPreferences(t *testing.T) {
	s := state("true", nil, exactly("a", 2))
	s.Objects.Classes[0].Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: preference("q", "true")}}
	report := run(t, s)
	require.False(t, report.Valid(false))
	for _, object := range report.Objects {
		require.Len(t, object.Errors, 1)
		require.Contains(t, object.Errors[0].Message, "the expression must return int, it returns bool")
	}

	s.Objects.Classes[0].Spec.Config[0].DeviceConfiguration = preference("q", "")
	report = run(t, s)
	require.False(t, report.Valid(false))
	require.Contains(t, report.Objects[0].Errors[0].Message, "spec.config[0].opaque.parameters.expression: Required value")
	require.Contains(t, report.Objects[1].Errors[0].Message, "spec.devices.requests[0].exactly.deviceClassName: Invalid value: \"x\": DeviceClass x: spec.config[0]")
}

func TestOneSet(t *testing.T) {
	claim, _ := preferring(t, preference("p", "1"), preference("q", "1"), all("a"), all("b"))
	require.Contains(t, claim.Warnings[0].Message, "p has no effect")
	claim, _ = preferring(t, preference("p", "1"), preference("q", "1"), exactly("a", 1), exactly("b", 1))
	require.Empty(t, claim.Warnings)
}
