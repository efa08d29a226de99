// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
)

// classByDefault is a class of all devices with a constraint that holds without a reference.
func classByDefault(name string, expressions ...string) *resourceapi.DeviceClass {
	class := classOf(name)
	for i, expression := range expressions {
		raw, err := json.Marshal(v1alpha1.CELDeviceConstraint{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind},
			Name:     fmt.Sprintf("default%d", i), Expression: expression, Default: true,
		})
		if err != nil {
			panic(err)
		}
		class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: parameters(v1alpha1.DriverName, string(raw))})
	}
	return class
}

func TestDefaultConstraints(t *testing.T) {
	for name, test := range map[string]struct {
		claim *claimBuilder
		want  []string
	}{
		"no constraint in the claim": {claim("c").want("x", 3), []string{"x=mla-2", "x=mla-3", "x=mla-4"}},
		"one device":                 {claim("c").want("x", 1), []string{"x=mla-0"}},
		"each request for itself": {claim("c").want("x", 2).want("y", 2),
			[]string{"x=mla-2", "x=mla-3", "y=mla-4", "y=mla-5"}},
		"admin access": {claim("c").want("x", 2).admin(), []string{"x=mla-0", "x=mla-1"}},
		"with a constraint of the claim": {claim("c").want("x", 2).cel("odd").define("odd", indices+".min() % 2 == 1"),
			[]string{"x=mla-3", "x=mla-4"}},
		"with an attribute constraint": {claim("c").want("x", 2).distinct(driver + "/index"), []string{"x=mla-2", "x=mla-3"}},
		"with a definition of the same name": {claim("c").want("x", 2).cel("default0").define("default0", indices+".sum() >= 8"),
			[]string{"x=mla-4", "x=mla-5"}},
		"an alternative": {claim("c").firstAvailable("x", sub("five", 5), subOf("any", "four", 4)),
			[]string{"x/four=mla-0", "x/four=mla-2", "x/four=mla-3", "x/four=mla-4"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{
				classes: []*resourceapi.DeviceClass{classByDefault(driver, inARow), classOf("any")},
				slices:  []*sliceBuilder{slice("ring", ring(6)...)},
				claims:  []*claimBuilder{test.claim},
				inUse:   []string{"mla-1"},
			}
			s.requireDevices(t, test.want...)
			s.opts = []Option{WithExhaustiveSearch()}
			s.requireDevices(t, test.want...)
		})
	}
}

func TestAllDefaultsOfAClassHold(t *testing.T) {
	s := scenario{
		classes: []*resourceapi.DeviceClass{classByDefault(driver, inARow, indices+".min() % 2 == 1")},
		slices:  []*sliceBuilder{slice("ring", ring(6)...)}, claims: []*claimBuilder{claim("c").want("x", 3)},
		opts: []Option{WithReasons()},
	}
	s.requireDevices(t, "x=mla-1", "x=mla-2", "x=mla-3")
	s.inUse = []string{"mla-2", "mla-4"}
	s.requireErrorOnNode(t, "constraint default0 of DeviceClass mla.example.com spec.config[0] (default): no set that the rest of the claim leaves satisfies it")
	s.claims = []*claimBuilder{claim("c").wantAll("x")}
	s.inUse = nil
	s.requireErrorOnNode(t, "constraint default1 of DeviceClass mla.example.com spec.config[1] (default): no set that the rest of the claim leaves satisfies it")

	for _, option := range []Option{WithoutDefaultConstraints(), WithoutCELConstraints()} {
		s.claims, s.opts = []*claimBuilder{claim("c").want("x", 2)}, []Option{option}
		s.requireDevices(t, "x=mla-0", "x=mla-1")
	}
}

func TestDefaultsThatDoNotCompile(t *testing.T) {
	s := scenario{classes: []*resourceapi.DeviceClass{classByDefault(driver, "devices.foo()")}, claims: []*claimBuilder{claim("c").want("x", 2)}}
	require.ErrorContains(t, s.allocator(t).CheckConstraints(s.apiClaims()), "claim default/c, constraint default0 (DeviceClass mla.example.com spec.config[0]): ERROR")
	s.claims = []*claimBuilder{claim("c").want("x", 1)}
	require.NoError(t, s.allocator(t).CheckConstraints(s.apiClaims()))
}

// TestClaimsForOneNode: claims for extended resources are made anew for each node, and resolved
// once for all that ask for the same.
func TestClaimsForOneNode(t *testing.T) {
	s := scenario{
		classes: []*resourceapi.DeviceClass{classByDefault(driver, inARow)},
		slices:  []*sliceBuilder{slice("ring", ring(6)...)}, inUse: []string{"mla-1"},
	}
	a := s.allocator(t)
	temporary := func(count int64) *resourceapi.ResourceClaim {
		c := claim("<extended-resources>").want("container-0-request-0", count)
		c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
		return c.ResourceClaim
	}
	for range 3 {
		for count := range int64(4) {
			results, err := a.Allocate(t.Context(), s.onNode(), []*resourceapi.ResourceClaim{temporary(count + 1)})
			require.NoError(t, err)
			require.Len(t, results[0].Devices.Results, int(count+1))
			want := "mla-2"
			if count == 0 {
				want = "mla-0"
			}
			require.Equal(t, want, results[0].Devices.Results[0].Device)
		}
	}
	resolved := 0
	a.resolvedClaims.byContent.Range(func(any, any) bool { resolved++; return true })
	require.Equal(t, 3, resolved)
	a.resolvedClaims.byClaim.Range(func(any, any) bool { t.Fatal("claims for one node would pile up"); return false })
}

// TestDefaultsArePartOfTheKey: one cache, and classes whose defaults change.
func TestDefaultsArePartOfTheKey(t *testing.T) {
	s := scenario{slices: []*sliceBuilder{slice("ring", ring(6)...)}, opts: []Option{WithCache(NewCache())}, claims: []*claimBuilder{claim("c").want("x", 2)}}
	for range 2 {
		for sum, want := range map[int][]string{1: {"x=mla-0", "x=mla-1"}, 7: {"x=mla-2", "x=mla-5"}, 9: {"x=mla-4", "x=mla-5"}} {
			s.classes = []*resourceapi.DeviceClass{classByDefault(driver, fmt.Sprintf("%s.sum() == %d", indices, sum))}
			s.requireDevices(t, want...)
		}
		s.classes = []*resourceapi.DeviceClass{classOf(driver)}
		s.requireDevices(t, "x=mla-0", "x=mla-1")
		s.classes = []*resourceapi.DeviceClass{classByDefault(driver, "devices.size() > 6")}
		s.requireNone(t)
		s.requireNone(t)
	}
}

// TestDefaultsAreReferences: a default means what a reference to the same definition means that
// covers the request alone.
func TestDefaultsAreReferences(t *testing.T) {
	expressions := []string{inARow, indices + ".sum() % 3 == 0", "devices.exists(d, d." + index[len("device."):] + " == 2)", "devices.size() != 3"}
	found, none := 0, 0
	cases.Check(t, func(rt *rapid.T) {
		chosen := rapid.SampledFrom(expressions).Draw(rt, "expression")
		implicit, explicit := claim("c"), claim("c")
		for i := range rapid.IntRange(1, 2).Draw(rt, "requests") {
			name, count := fmt.Sprintf("r%d", i), rapid.Int64Range(1, 3).Draw(rt, "count")
			implicit.want(name, count)
			explicit.want(name, count)
			if count > 1 {
				explicit.cel("default0", name)
			}
		}
		s := scenario{slices: []*sliceBuilder{slice("ring", ring(6)...)}, classes: []*resourceapi.DeviceClass{classByDefault(driver, chosen)}}
		s.inUse = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"mla-0", "mla-1", "mla-2", "mla-3", "mla-4", "mla-5"}), 0, 4, rapid.ID).Draw(rt, "allocated")
		s.claims = []*claimBuilder{implicit}
		got, err := s.allocate(t)
		require.NoError(rt, err)
		s.claims = []*claimBuilder{explicit}
		want, err := s.allocate(t)
		require.NoError(rt, err)
		require.Equal(rt, want, got)
		if want == nil {
			none++
		} else {
			found++
		}
	})
	require.Positive(t, min(found, none), "the generator has lost a case")
}
