// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

// TestTexts tests that TextsOf counts each text of a claim that is compiled.
func TestTexts(t *testing.T) {
	selector := func(text string) resourceapi.DeviceSelector {
		return resourceapi.DeviceSelector{CEL: &resourceapi.CELDeviceSelector{Expression: text}}
	}
	opaque := func(driver, raw string) resourceapi.DeviceClaimConfiguration {
		return resourceapi.DeviceClaimConfiguration{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(raw)}},
		}}
	}
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	devices := &claim.Spec.Devices
	devices.Requests = []resourceapi.DeviceRequest{
		{Name: "a", Exactly: &resourceapi.ExactDeviceRequest{
			Selectors:         []resourceapi.DeviceSelector{selector("1234"), {}},
			DerivedAttributes: []resourceapi.DeviceDerivedAttribute{{Name: "d/x", Expression: "12345"}},
		}},
		{Name: "b", FirstAvailable: []resourceapi.DeviceSubRequest{{Selectors: []resourceapi.DeviceSelector{selector("12"), selector("1")}}}},
		{Name: "neither"},
	}
	devices.Config = []resourceapi.DeviceClaimConfiguration{opaque(v1alpha1.DriverName, "{}"), opaque("other.example.com", strings.Repeat(" ", 100_000)), {}}
	require.Equal(t, v1alpha1.Texts{Expressions: 5, Bytes: 14}, v1alpha1.TextsOf(&claim.Spec))
	require.NoError(t, v1alpha1.ClaimCarrier(claim).CheckTexts())

	for what, grow := range map[string]func(){
		"the selectors and the configuration for celset.dev have 5 expressions with 65537 bytes in total": func() {
			devices.Requests[1].FirstAvailable[0].Selectors[0] = selector(strings.Repeat("1", v1alpha1.MaxClaimText-14+3))
		},
		"the selectors and the configuration for celset.dev have 257 expressions with 267 bytes in total": func() {
			devices.Requests[1].FirstAvailable[0].Selectors = nil
			for range v1alpha1.MaxClaimExpressions - 3 + 1 {
				devices.Requests[1].FirstAvailable[0].Selectors = append(devices.Requests[1].FirstAvailable[0].Selectors, selector("1"))
			}
			devices.Config[0] = opaque(v1alpha1.DriverName, "{}  ")
		},
	} {
		before := claim.DeepCopy()
		grow()
		carrier := v1alpha1.ClaimCarrier(claim)
		_, err := carrier.Definitions()
		require.ErrorContains(t, err, "ResourceClaim ns/c: spec.devices: Forbidden: "+what+", the limits for a claim are 256 expressions and 65536 bytes")
		_, err = carrier.Preferences()
		require.ErrorContains(t, err, what)
		require.NoError(t, v1alpha1.CheckPod([]*resourceapi.ResourceClaim{claim}))
		require.ErrorContains(t, v1alpha1.CheckPod([]*resourceapi.ResourceClaim{claim, claim, claim, claim, claim}), "the limits for a pod are 1024 expressions and 262144 bytes")
		claim, devices = before, &before.Spec.Devices
	}
}
