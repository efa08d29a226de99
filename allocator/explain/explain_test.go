// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
)

const (
	index      = "d.attributes['mla.example.com'].index"
	contiguous = "devices.map(d, " + index + ").max() - devices.map(d, " + index + ").min() == devices.size() - 1"
	even       = "devices.exists(d, " + index + " == 0) &&\n  " + contiguous
)

func TestNode(t *testing.T) {
	for name, test := range map[string]struct {
		claims, allocated []*resourceapi.ResourceClaim
		want              string
		unmet             explain.Condition
		inTheWay          []string
		never             bool
	}{
		"fits": {
			claims: []*resourceapi.ResourceClaim{such(wanting("c", 4), "ring4", contiguous)},
			want:   "the claims fit",
		},
		"too few": {
			claims:    []*resourceapi.ResourceClaim{such(wanting("c", 4), "ring4", contiguous)},
			allocated: []*resourceapi.ResourceClaim{owning("a", 0, 1, 2, 3, 4), owning("b", 5)},
			want:      "request mla wants 4 devices, 2 of 8 that match are free; in the way: claim default/a with mla-0, mla-1, mla-2, ...",
			inTheWay:  []string{"default/a"},
		},
		"more than there are": {
			claims: []*resourceapi.ResourceClaim{wanting("c", 9)},
			want:   "request mla wants 9 devices, 8 of 8 that match are free; it would not fit either if all devices of the node were free",
			never:  true,
		},
		"no set": {
			claims:    []*resourceapi.ResourceClaim{such(wanting("c", 4), "ring4", even)},
			allocated: []*resourceapi.ResourceClaim{owning("a", 3), owning("b", 6)},
			want: "6 of 8 devices for request mla are free, but no set satisfies constraint ring4, line 2, column 3: " +
				"devices.map(d, d.attributes[\"mla.example.com\"].index).max() - devices.map(d, d.attributes[\"mla.example.com\"].index).min() == devices.size() - 1; " +
				"in the way: claim default/a with mla-3",
			unmet:    explain.Condition{Claim: "default/c", Constraint: "ring4", Line: 2, Column: 3},
			inTheWay: []string{"default/a"},
		},
		"never": {
			claims: []*resourceapi.ResourceClaim{such(wanting("c", 4), "odd", "devices.all(d, "+index+" % 3 == 0)")},
			want: "8 of 8 devices for request mla are free, but no set satisfies constraint odd, line 1, column 1: " +
				"devices.all(d, d.attributes[\"mla.example.com\"].index % 3 == 0); it would not fit either if all devices of the node were free",
			unmet: explain.Condition{Claim: "default/c", Constraint: "odd", Line: 1, Column: 1},
			never: true,
		},
		"attribute constraint": {
			claims: []*resourceapi.ResourceClaim{such(matching(wanting("c", 2), driver+"/index"), "ring", contiguous)},
			want: "8 of 8 devices for request mla are free, but no set satisfies matchAttribute mla.example.com/index; " +
				"it would not fit either if all devices of the node were free",
			unmet: explain.Condition{Claim: "default/c", Constraint: "matchAttribute mla.example.com/index"},
			never: true,
		},
		"second claim": {
			claims:    []*resourceapi.ResourceClaim{such(wanting("c", 4), "part", contiguous), such(wanting("d", 4), "part", contiguous)},
			allocated: []*resourceapi.ResourceClaim{owning("elsewhere"), wanting("waits", 3)},
			want:      "the claims fit",
		},
		"second claim has no set": {
			claims:    []*resourceapi.ResourceClaim{such(wanting("c", 2), "part", contiguous), such(wanting("d", 3), "part", contiguous)},
			allocated: []*resourceapi.ResourceClaim{owning("a", 2), owning("b", 5)},
			want: "6 of 8 devices for request mla of claim default/c, 6 of 8 devices for request mla of claim default/d are free, but no set satisfies constraint part, line 1, column 1: " +
				"devices.map(d, d.attributes[\"mla.example.com\"].index).max() - devices.map(d, d.attributes[\"mla.example.com\"].index).min() == devices.size() - 1; " +
				"in the way: claim default/a with mla-2",
			unmet:    explain.Condition{Claim: "default/d", Constraint: "part", Line: 1, Column: 1},
			inTheWay: []string{"default/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem(t, ring(t, 8), test.claims...)
			p.Allocated = test.allocated
			e, err := p.Node(t.Context(), node)
			require.NoError(t, err)
			require.Equal(t, test.want, e.String())
			require.Equal(t, test.want == "the claims fit", e.Fits)
			require.Equal(t, test.never, e.Never)
			var owners []string
			for _, owner := range e.InTheWay {
				owners = append(owners, owner.Claim)
			}
			require.Equal(t, test.inTheWay, owners)
			if test.unmet.Constraint == "" {
				require.Nil(t, e.Unmet)
				return
			}
			require.Equal(t, []any{test.unmet.Claim, test.unmet.Constraint, test.unmet.Line, test.unmet.Column},
				[]any{e.Unmet.Claim, e.Unmet.Constraint, e.Unmet.Line, e.Unmet.Column})
		})
	}
}

// An owner with admin access keeps nobody from a device, and of a shared device an owner
// has a share.
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

// What is wrong with a claim on every node is an error.
func TestErrors(t *testing.T) {
	for name, test := range map[string]struct {
		claim *resourceapi.ResourceClaim
		want  string
	}{
		"does not compile": {such(wanting("c", 2), "bad", "devices.foo()"), "undeclared reference to 'foo'"},
		"no definition":    {matching(wanting("c", 2), "celset.dev/none"), "no CELDeviceConstraint of that name"},
		"fails":            {such(wanting("c", 2), "fails", "devices.all(d, d.attributes['mla.example.com'].none == 1)"), "no such key: none"},
		"too expensive": {such(wanting("c", 4), "slow", "devices.map(d, string(d.attributes['mla.example.com'].index)).join(',') == 'x'"),
			"budget"},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem(t, ring(t, 40), test.claim)
			p.Options = append(p.Options, allocator.WithStepBudget(100))
			_, err := p.Node(t.Context(), node)
			require.ErrorContains(t, err, test.want)
		})
	}
	p := problem(t, ring(t, 4), such(wanting("c", 2), "ring", contiguous))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Node(ctx, node)
	require.ErrorIs(t, err, context.Canceled)
}

// What is said is short whatever is in the way, and complete as data.
func TestBounded(t *testing.T) {
	long := "devices.all(d, " + strings.Repeat("d.driver != 'a' && ", 200) + index + " > 30) && true"
	p := problem(t, ring(t, 40), such(wanting("c", 4), "long", long))
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
