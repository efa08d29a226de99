// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

// TestDefaultsAreNamed: what a class demands is a condition like those of the claim, and comes
// after them.
func TestDefaultsAreNamed(t *testing.T) {
	byDefault := func(p *explain.Problem, expression string) *explain.Problem {
		class, err := p.Classes.Get(driver)
		require.NoError(t, err)
		class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: []byte(
				`{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": "row", "default": true, "expression": "` + expression + `"}`)}},
		}}}
		return p
	}
	p := byDefault(problem(t, ring(t, 8), such(wanting("c", 4), "low", "devices.all(d, "+index+" < 7)")), strings.ReplaceAll(contiguous, `"`, `\"`)+" && devices.size() > 1")
	p.Allocated = []*resourceapi.ResourceClaim{owning("a", 3), owning("b", 6)}
	e, err := p.Node(t.Context(), node)
	require.NoError(t, err)
	require.Equal(t, "6 of 8 devices for request mla are free, but no set satisfies constraint row of DeviceClass mla.example.com spec.config[0] (default), line 1, column 1: "+
		`devices.map(d, d.attributes["mla.example.com"].index).max() - devices.map(d, d.attributes["mla.example.com"].index).min() == devices.size() - 1; `+
		"in the way: claim default/a with mla-3", e.String())

	p = byDefault(problem(t, ring(t, 8), wanting("c", 4)), "devices.size() > 4")
	e, err = p.Node(t.Context(), node)
	require.NoError(t, err)
	require.Contains(t, e.String(), "no set satisfies constraint row of DeviceClass mla.example.com spec.config[0] (default), line 1, column 1: devices.size() > 4; it would not fit either")
	require.Empty(t, p.Claims[0].Spec.Devices.Constraints, "the claim is as it was")
}
