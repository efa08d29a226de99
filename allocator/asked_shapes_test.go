// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

func TestShapesOf(t *testing.T) {
	byDefault := resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver:     v1alpha1.DriverName,
		Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDeviceConstraint","name":"usual","expression":"true","default":true}`)},
	}}
	lister := classes{
		"pairs": shaped("pairs", definitionOf("pair", inPairs), definitionOf("arc", inArc)),
		"usual": shaped("usual", byDefault), driver: classOf(driver),
	}
	for name, test := range map[string]struct {
		claim *claimBuilder
		want  []Shape
	}{
		"by reference":              {claim("c").want("r", 2).class("pairs").cel("pair"), []Shape{{"pairs", "pair", 2}}},
		"two constraints":           {claim("c").want("r", 2).class("pairs").cel("pair").cel("arc"), []Shape{{"pairs", "pair", 2}, {"pairs", "arc", 2}}},
		"by default":                {claim("c").want("r", 4).class("usual"), []Shape{{"usual", "usual", 4}}},
		"requests together":         {claim("c").want("r", 2).class("pairs").want("s", 1).class("pairs").cel("pair"), []Shape{{"pairs", "pair", 3}}},
		"one of the requests":       {claim("c").want("r", 2).class("pairs").want("s", 1).cel("pair", "r"), []Shape{{"pairs", "pair", 2}}},
		"of several classes":        {claim("c").want("r", 2).class("pairs").want("s", 1).cel("pair"), nil},
		"its own definition":        {claim("c").want("r", 2).class("pairs").cel("pair").define("pair", "true"), nil},
		"one device":                {claim("c").want("r", 1).class("pairs").cel("pair"), nil},
		"no constraint":             {claim("c").want("r", 2).class("pairs"), nil},
		"all":                       {claim("c").wantAll("r").class("pairs").cel("pair"), nil},
		"admin access":              {claim("c").want("r", 2).class("pairs").admin().cel("pair"), nil},
		"a prioritized list":        {claim("c").firstAvailable("r", subOf("pairs", "a", 2)).cel("pair"), nil},
		"nobody defines it":         {claim("c").want("r", 2).class("pairs").cel("none"), nil},
		"more than a claim can get": {claim("c").want("r", 20).class("pairs").want("s", 20).class("pairs").cel("pair"), nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, ShapesOf(test.claim.ResourceClaim, lister)) })
	}
}
