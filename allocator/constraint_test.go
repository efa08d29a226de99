// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/inventory"
)

func TestUnknownConstraint(t *testing.T) {
	c := claim("c").want("mla", 1).match(color)
	c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, resourceapi.DeviceConstraint{})
	scenario{claims: []*claimBuilder{c}}.requireError(t, "claim default/c, constraint #1: empty constraint (unsupported constraint type?)")
}

// Constraints are asked in the order of the claim: the first that refuses a
// device spares the others, and those before it forget the device.
func TestOrderOfConstraints(t *testing.T) {
	devices := colored("red", "blue", "red", nil)
	broken := "1 / (devices.filter(d, d.attributes['mla.example.com'].color == 'blue').size() - 1) != 0"
	s := scenario{slices: []*sliceBuilder{devices}}
	s.claims = []*claimBuilder{claim("c").want("x", 2).match(color).cel("broken").define("broken", broken)}
	s.requireDevices(t, "x=a", "x=c")
	s.claims = []*claimBuilder{claim("c").want("x", 2).cel("broken").match(color).define("broken", broken)}
	s.requireError(t, "devices [mla.example.com/pool-1/a, mla.example.com/pool-1/b]: ERROR: <input>:1:3: division by zero")
}

// Which constraint an attribute makes depends on whether attributes may be lists.
func TestAttributeConstraints(t *testing.T) {
	s := scenario{claims: []*claimBuilder{claim("c").want("x", 1).match(color).distinct(color)}}
	require.IsType(t, &matchAttribute{}, s.search(t).requests[0][0][0].constraints[0])
	require.IsType(t, &distinctAttribute{}, s.search(t).requests[0][0][0].constraints[1])
	s.features = listsOn
	require.IsType(t, &matchAttributeList{}, s.search(t).requests[0][0][0].constraints[0])
	require.IsType(t, &distinctAttributeList{}, s.search(t).requests[0][0][0].constraints[1])
}

// A constraint names a request, one of its alternatives, or nothing for all.
func TestCovers(t *testing.T) {
	plain, alternative := &request{name: "x"}, &request{name: "x/large", parent: "x"}
	for name, test := range map[string]struct {
		requests           []string
		plain, alternative bool
	}{
		"all":               {nil, true, true},
		"request":           {[]string{"y", "x"}, true, true},
		"alternative":       {[]string{"x/large"}, false, true},
		"other alternative": {[]string{"x/small"}, false, false},
		"name alone":        {[]string{"large"}, false, false},
		"other request":     {[]string{"y"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := &resourceapi.DeviceConstraint{Requests: test.requests}
			require.Equal(t, test.plain, covers(api, plain))
			require.Equal(t, test.alternative, covers(api, alternative))
		})
	}
}

// requireAdd adds a device to a constraint and demands that it is accepted or not.
func requireAdd(t *testing.T, c constraint, added *inventory.Candidate, want bool) {
	t.Helper()
	ok, err := c.add(&request{}, added)
	require.NoError(t, err)
	require.Equal(t, want, ok)
}

// attributeConstraintOn is for tests that use constraints alone.
func attributeConstraintOn(name string) attributeConstraint {
	return attributeConstraint{&search{}, resourceapi.FullyQualifiedName(name)}
}
