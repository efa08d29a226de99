// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/transcript"
	"github.com/celset/celset/internal/topology"
)

const (
	index      = "d.attributes['mla.example.com'].index"
	contiguous = "devices.map(d, " + index + ").max() - devices.map(d, " + index + ").min() == devices.size() - 1"
	even       = "devices.exists(d, " + index + " == 0) &&\n  " + contiguous
)

// TestExplanations runs the cases in testdata/explanations.txt: a node with a ring of eight devices, claims with expressions,
// and other claims that have some of the devices.
func TestExplanations(t *testing.T) {
	transcript.Run(t, filepath.Join("testdata", "explanations.txt"), explained)
}

func explained(t *testing.T, statements string) string {
	t.Helper()
	p := problem(t, ring(t, 8))
	p.Options = append(p.Options, allocator.WithStepBudget(60))
	for statement := range strings.SplitSeq(strings.NewReplacer("$index", index, "$row", contiguous, "$even", even).Replace(statements), "; ") {
		keyword, rest, _ := strings.Cut(statement, " ")
		text, expression, _ := strings.Cut(rest, " = ")
		words := strings.Fields(text)
		last := len(p.Claims) - 1
		switch keyword {
		case "wants", "waits":
			count, err := strconv.ParseInt(words[1], 10, 64)
			require.NoError(t, err)
			if claim := wanting(words[0], count); keyword == "wants" {
				p.Claims = append(p.Claims, claim)
			} else {
				p.Allocated = append(p.Allocated, claim)
			}
		case "has":
			var devices []int
			for _, word := range words[1:] {
				device, err := strconv.Atoi(word)
				require.NoError(t, err)
				devices = append(devices, device)
			}
			namespace, name, isForeign := strings.Cut(words[0], "/")
			claim := owning(words[0], devices...)
			if isForeign {
				claim.Namespace, claim.Name = namespace, name
			}
			p.Allocated = append(p.Allocated, claim)
		case "match":
			p.Claims[last] = matching(p.Claims[last], words[0])
		case "such":
			p.Claims[last] = withConstraint(p.Claims[last], words[0], expression)
		case "default":
			class, err := p.Classes.Get(driver)
			require.NoError(t, err)
			raw := fmt.Appendf(nil, `{"apiVersion": "celset.dev/v1alpha1", "kind": "CELDeviceConstraint", "name": %q, "enforcement": "Always", "expression": %q}`, words[0], expression)
			class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: configuration(raw)}}
		case "names":
			p.NamesAll = true
		default:
			t.Fatalf("no such statement: %s", statement)
		}
	}
	before := len(p.Claims[0].Spec.Devices.Constraints)
	e, err := p.Node(t.Context(), node)
	require.Len(t, p.Claims[0].Spec.Devices.Constraints, before, "the claim is as it was")
	if err != nil {
		return "error: " + err.Error()
	}
	text := e.String()
	require.Equal(t, text == "the claims fit", e.Fits)
	require.Equal(t, strings.Contains(text, "the claims would not fit"), e.Never)
	require.Equal(t, e.Unmet != nil, strings.Contains(text, "no set satisfies"))
	if e.Unmet != nil && e.Unmet.Line > 0 {
		require.Contains(t, text, fmt.Sprintf("no set satisfies constraint %s, line %d, column %d: ", e.Unmet.Constraint, e.Unmet.Line, e.Unmet.Column))
	}
	return text
}

// A claim with admin access does not own a device. A claim with a share owns a part of the device.
func TestOwners(t *testing.T) {
	p := problem(t, ring(t, 4), wanting("c", 4))
	admin, shared := owning("admin", 0), owning("shared", 1)
	admin.Status.Allocation.Devices.Results[0].AdminAccess = ptr.To(true)
	p.Features.AdminAccess, p.Features.ConsumableCapacity = true, true
	p.Slices[0].Spec.Devices[1].AllowMultipleAllocations = ptr.To(true)
	result := &shared.Status.Allocation.Devices.Results[0]
	result.ShareID = ptr.To(types.UID("9c1d6d6c-6b3f-4b5c-a2b7-4fd4ee0b3b0a"))
	p.Allocated = []*resourceapi.ResourceClaim{admin, shared}
	e, err := p.Node(t.Context(), node)
	require.NoError(t, err)
	require.True(t, e.Fits, e)
}

func TestContextEnds(t *testing.T) {
	p := problem(t, ring(t, 4), withConstraint(wanting("c", 2), "ring", contiguous))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Node(ctx, node)
	require.ErrorIs(t, err, context.Canceled)
}

// TestBounded checks that the text stays short for long expressions and names, and that the data has all claims in the way.
func TestBounded(t *testing.T) {
	long := "devices.all(d, " + strings.Repeat("d.driver != 'a' && ", 200) + index + " > 30) && true"
	p := problem(t, ring(t, 40), withConstraint(wanting("c", 4), "long", long))
	for i := range 36 {
		p.Allocated = append(p.Allocated, owning(strings.Repeat("x", 30)+string(rune('a'+i%26))+strings.Repeat("y", i/26), i+4))
	}
	e, err := p.Node(t.Context(), node)
	require.NoError(t, err)
	require.LessOrEqual(t, len(e.String()), 600)
	require.Contains(t, e.String(), "constraint long, line 1, column 1: ")
	require.Len(t, e.InTheWay, 4)
	raw, err := json.Marshal(e)
	require.NoError(t, err)
	require.Contains(t, string(raw), `"matching":40,"free":4`)
}

const driver = "mla.example.com"

// classes is a class lister.
type classes map[string]*resourceapi.DeviceClass

func (c classes) List() ([]*resourceapi.DeviceClass, error) { return nil, nil }

func (c classes) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := c[name]; ok {
		return class, nil
	}
	return nil, apierrors.NewNotFound(resourceapi.Resource("deviceclasses"), name)
}

// node is the node that has the devices in all tests.
var node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}

// problem returns a problem with the devices of a topology on the node, and the given claims.
func problem(t testing.TB, wired topology.Topology, claims ...*resourceapi.ResourceClaim) *explain.Problem {
	t.Helper()
	slices, err := wired.ResourceSlices(node.Name)
	require.NoError(t, err)
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}}
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: "device.driver == '" + driver + "'"}}}
	return &explain.Problem{Problem: allocator.Problem{
		Claims: claims, Classes: classes{driver: class}, Slices: slices,
		Selectors: dracel.NewCache(10, dracel.Features{}),
		Options:   []allocator.Option{allocator.WithCache(allocator.NewCache())},
	}}
}

func ring(t testing.TB, n int) topology.Topology {
	t.Helper()
	wired, err := topology.NewRing(topology.Family{Driver: driver, Prefix: "mla"}, n)
	require.NoError(t, err)
	return wired
}

// wanting returns a claim for count devices.
func wanting(name string, count int64) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{
		Name:    "mla",
		Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: driver, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count},
	}}
	return claim
}

// withConstraint adds a CEL constraint to a claim.
func withConstraint(claim *resourceapi.ResourceClaim, name, expression string) *resourceapi.ResourceClaim {
	raw, err := json.Marshal(&v1alpha1.CELDeviceConstraint{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind}, Name: name, Expression: expression,
	})
	if err != nil {
		panic(err)
	}
	claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(v1alpha1.AttributeDomain + "/" + name)),
	})
	claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{
		DeviceConfiguration: configuration(raw),
	})
	return claim
}

// configuration returns a configuration for celset.
func configuration(raw []byte) resourceapi.DeviceConfiguration {
	return resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
		Driver: v1alpha1.DriverName, Parameters: runtime.RawExtension{Raw: raw},
	}}
}

// matching adds a matchAttribute constraint to a claim.
func matching(claim *resourceapi.ResourceClaim, attribute string) *resourceapi.ResourceClaim {
	claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints, resourceapi.DeviceConstraint{
		MatchAttribute: ptr.To(resourceapi.FullyQualifiedName(attribute)),
	})
	return claim
}

// owning returns a claim with the devices at the given indices of the node.
func owning(name string, devices ...int) *resourceapi.ResourceClaim {
	claim := wanting(name, int64(len(devices)))
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, i := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "mla", Driver: driver, Pool: node.Name, Device: fmt.Sprintf("mla-%d", i),
		})
	}
	return claim
}

// TestConditions checks that the conditions are in order, that Is finds the unmet condition, and that the counts and allocations
// of claims that fit are available.
func TestConditions(t *testing.T) {
	p := problem(t, ring(t, 8))
	p.Claims = append(p.Claims, withConstraint(wanting("new", 4), "c", strings.NewReplacer("$index", index).Replace(even)))
	require.NoError(t, p.Ready(t.Context()))
	conditions, err := p.Conditions(t.Context())
	require.NoError(t, err)
	require.Len(t, conditions, 2)
	e, err := p.Node(t.Context(), node)
	require.NoError(t, err)
	require.True(t, e.Fits)
	require.Equal(t, 8, e.Requests[0].Free)
	require.Len(t, e.Allocations(), 1)
	require.Len(t, e.Allocations()[0].Devices.Results, 4)
	require.False(t, conditions[0].Is(e.Unmet))

	p = problem(t, ring(t, 8))
	p.Claims = append(p.Claims, withConstraint(wanting("new", 4), "c", even))
	p.Allocated = append(p.Allocated, owning("old", 1))
	e, err = p.Node(t.Context(), node)
	require.NoError(t, err)
	require.False(t, e.Fits)
	require.Empty(t, e.Allocations())
	require.False(t, conditions[0].Is(e.Unmet))
	require.True(t, conditions[1].Is(e.Unmet))
}
