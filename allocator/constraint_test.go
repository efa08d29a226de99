// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	resourceapi "k8s.io/api/resource/v1"
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
