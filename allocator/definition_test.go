// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/definition"
	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// An object that no API server or only a newer API server sends causes an error instead of a panic.
func TestUnknownKinds(t *testing.T) {
	for message, change := range map[string]func(scenario){
		"claim default/c, constraint #1: empty constraint (unsupported constraint type?)": func(s scenario) {
			s.Claims[0].Spec.Devices.Constraints = append(s.Claims[0].Spec.Devices.Constraints, resourceapi.DeviceConstraint{})
		},
		"claim default/c, request mla: selector #0: CEL expression empty (unsupported selector type?)": func(s scenario) {
			s.Claims[0].Edit(func(r *resourceapi.ExactDeviceRequest) { r.Selectors = make([]resourceapi.DeviceSelector, 1) })
		},
		"class future: selector #0: CEL expression empty (unsupported selector type?)": func(s scenario) {
			s.Classes[0].Spec.Selectors = make([]resourceapi.DeviceSelector, 1)
			s.Claims[0].Class("future")
		},
	} {
		s := given(t, "class future; devices 2 mla-# index=#; claim c; want mla 1; match color")
		change(s)
		s.requireError(t, message)
		s.with(WithCache(NewCache())).requireError(t, message)
	}
}

func TestCheckConstraints(t *testing.T) {
	s := given(t, "claim plain; want x 1; match color; claim good; want x 1; cel any = true; claim bad; want x 1; cel none")
	claims := s.APIClaims()
	require.NoError(t, s.allocator(t).CheckConstraints(nil))
	require.NoError(t, s.allocator(t).CheckConstraints(claims[:2]))
	require.ErrorContains(t, s.allocator(t).CheckConstraints(claims), "ResourceClaim default/bad")
	s.Options = []option{WithoutCELConstraints()}
	require.NoError(t, s.allocator(t).CheckConstraints(claims))
}

// asked is a class lister that counts look-ups.
type asked struct {
	structured.DeviceClassLister
	mutex sync.Mutex
	names []string
}

func (a *asked) Get(name string) (*resourceapi.DeviceClass, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.names = append(a.names, name)
	return a.DeviceClassLister.Get(name)
}

// compilations is an Observer that counts the expressions that an environment compiles.
type compilations struct {
	cel.Observer
	mutex sync.Mutex
	count int
}

func (c *compilations) ObserveCompilation(string, bool, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.count++
}

func (c *compilations) ObserveEvaluation(string, uint64, error) {}

// The scheduler tries a pod on many nodes. Its definitions are looked up and compiled once, even if that fails.
func TestDefinitionsAreRememberedPerClaim(t *testing.T) {
	seen := &compilations{}
	s := given(t, "class vendor; define any = true; class broken; define none = (; devices 2 mla-# index=#; claim c; want x 1 class=vendor; cel any")
	a := s.with(WithEnvironment(environmentWith(t, cel.Config{Observer: seen}))).allocator(t)
	classes := &asked{DeviceClassLister: a.planner.Classes.DeviceClassLister}
	a.planner.Classes.DeviceClassLister = classes
	for range 3 {
		_, err := a.Allocate(t.Context(), s.OnNode(), s.APIClaims())
		require.NoError(t, err)
	}
	require.Equal(t, 1, seen.count)
	require.Equal(t, []string{"vendor"}, classes.names, "once for the definition, the content, the readSet and the requests of all calls")

	broken := []*resourceapi.ResourceClaim{claim("c").Want("x", 1).Class("broken").Cel("none").ResourceClaim}
	for range 3 {
		require.ErrorContains(t, a.CheckConstraints(broken), "Syntax error")
	}
	require.Equal(t, 2, seen.count)

	plain := []*resourceapi.ResourceClaim{claim("c").Want("x", 1).ResourceClaim}
	require.NoError(t, a.CheckConstraints(plain))
	_, remembered := a.planner.ResolvedClaims.ByClaim.Load(plain[0])
	require.False(t, remembered, "claims without CEL constraints would pile up")
}

// The scheduler creates claims for extended resources anew for each node. Equal claims are resolved once.
func TestClaimsForOneNode(t *testing.T) {
	s := given(t, "class mla.example.com; define row default = $row; devices 6 mla-# index=#; allocated mla-1")
	a := s.allocator(t)
	temporary := func(count int64) *resourceapi.ResourceClaim {
		c := claim("<extended-resources>").Want("container-0-request-0", count)
		c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
		return c.ResourceClaim
	}
	for range 3 {
		for count := range int64(4) {
			results, err := a.Allocate(t.Context(), s.OnNode(), []*resourceapi.ResourceClaim{temporary(count + 1)})
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
	a.planner.ResolvedClaims.ByContent.Range(func(any, any) bool { resolved++; return true })
	require.Equal(t, 3, resolved)
	a.planner.ResolvedClaims.ByClaim.Range(func(any, any) bool { t.Fatal("claims for one node would pile up"); return false })
}

// A default constraint has the same effect as a constraint that refers to its definition and covers only the request.
func TestDefaultsAreReferences(t *testing.T) {
	expressions := []string{"$row", "$indices.sum() % 3 == 0", "devices.exists(d, $at.index == 2)", "devices.size() != 3"}
	found, none := 0, 0
	cases.Check(t, func(rt *rapid.T) {
		chosen := rapid.SampledFrom(expressions).Draw(rt, "expression")
		implicit, explicit := claim("c"), claim("c")
		for i := range rapid.IntRange(1, 2).Draw(rt, "requests") {
			name, count := fmt.Sprintf("r%d", i), rapid.Int64Range(1, 3).Draw(rt, "count")
			implicit.Want(name, count)
			explicit.Want(name, count)
			if count > 1 {
				explicit.Cel("default0", name)
			}
		}
		s := given(t, "class mla.example.com; define default0 default = "+chosen+"; devices 6 mla-# index=#")
		s.InUse = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"mla-0", "mla-1", "mla-2", "mla-3", "mla-4", "mla-5"}), 0, 4, rapid.ID).Draw(rt, "allocated")
		s.Claims = []*claimBuilder{implicit}
		got, err := s.allocate(t)
		require.NoError(rt, err)
		s.Claims = []*claimBuilder{explicit}
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

// For a prepared claim, a search decodes and compiles nothing.
func TestSearchesReadNothingThatWasPrepared(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	preparer, err := NewPreparer(environment, dracel.Features{})
	require.NoError(t, err)
	s := given(t, "devices 8 mla-# index=#; claim c; want a 2; first b; sub x 2; sub y 1; cel two a = devices.all(d, $at.index < 7); cel all = $indices.sum() > 9")
	c := s.Claims[0]
	c.UID = "u"
	definition.Analyses.Forget()
	prepared, err := preparer.Prepare(t.Context(), c.ResourceClaim, classes{driver: classOf(driver)}, true)
	require.NoError(t, err)
	known := definition.Analyses.Used()
	require.Positive(t, known)
	results, err := s.with(WithEnvironment(environment), WithPrepared(Prepared{"u": prepared})).allocate(t)
	require.NoError(t, err)
	require.Len(t, devicesOf(results), 4)
	require.Equal(t, known, definition.Analyses.Used())
}

func names(ids []structured.DeviceID) []string {
	result := []string{}
	for _, id := range ids {
		result = append(result, id.Device.String())
	}
	return result
}

// RequestDevices returns the devices for a request regardless of other requests, without devices that a selector fails for.
func TestRequestDevices(t *testing.T) {
	s := given(t, `device a index=0; device b index=1; device none; device tainted index=3 +taint=NoSchedule; allocated b
claim c; want x 3; want y 1 if $device.index < 3`)
	a := s.allocator(t)
	devices, err := a.RequestDevices(t.Context(), s.OnNode(), s.APIClaims())
	require.NoError(t, err)
	require.Len(t, devices, 2)
	x, y := devices[0], devices[1]
	require.Equal(t, []any{"c", "x", 3, "y", 1}, []any{x.Claim.Name, x.Request, x.Wanted, y.Request, y.Wanted})
	require.Equal(t, [][]string{{"a", "b", "none"}, {"a", "none"}, {}}, [][]string{names(x.Matching), names(x.Free), names(x.Failed)})
	require.Equal(t, [][]string{{"a", "b"}, {"a"}, {"none"}}, [][]string{names(y.Matching), names(y.Free), names(y.Failed)})
	all, err := a.NodeDevices(s.OnNode())
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "none", "tainted"}, names(all))
}

func TestRequestDevicesFails(t *testing.T) {
	s := scenario{fixture.Scenario{Slices: []*sliceBuilder{slice("1", ring(2)...)}, Claims: []*claimBuilder{claim("c").Want("x", 1)}}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.allocator(t).RequestDevices(ctx, s.OnNode(), s.APIClaims())
	require.ErrorIs(t, err, context.Canceled)

	claims := s.APIClaims()
	claims[0].Spec.Devices.Requests[0].Exactly.DeviceClassName = "none"
	_, err = s.allocator(t).RequestDevices(t.Context(), s.OnNode(), claims)
	require.ErrorContains(t, err, "could not retrieve device class none")
}
