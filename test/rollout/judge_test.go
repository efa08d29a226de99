// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestSetsAreJudged: without it a judge that accepts everything would find nothing wrong.
func TestSetsAreJudged(t *testing.T) {
	for _, test := range []struct{ kind, devices, want string }{
		{"ring", "mla-2 mla-3 mla-4", ""},
		{"ring", "mla-0 mla-1 mla-7", "no set of a ring"},
		{"ring", "mla-0 mla-1 mla-3", "no set of a ring"},
		{"pair", "mla-0 mla-1", ""},
		{"pair", "mla-0 mla-2", "no set of a pair"},
		{"block", "mesh-0 mesh-1 mesh-3 mesh-4", ""},
		{"block", "mesh-0 mesh-1 mesh-2 mesh-3", "no set of a block"},
		{"plain", "mla-0 mla-5", ""},
		{"plain", "mla-0", "no set of a plain"},
		{"stock", "mla-0 mla-5@elsewhere", "in pool elsewhere"},
		{"plain", "mla-0 mesh-1", "has a device of"},
		{"extended", "mla-3", ""},
		{"", "mla-3 mla-4", "no set of a extended"},
	} {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kindLabel: test.kind}}}
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		for device := range strings.FieldsSeq(test.devices) {
			name, pool, _ := strings.Cut(device, "@")
			prefix, _, _ := strings.Cut(name, "-")
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
				Driver: prefix + ".example.com", Pool: pool, Device: name,
			})
		}
		got := judge(claim)
		require.True(t, test.want == "" && got == "" || test.want != "" && strings.Contains(got, test.want), "%s %s: %s", test.kind, test.devices, got)
	}
}

// A pod waits for what it could have only if that is known.
func TestKindsKnowTheirSets(t *testing.T) {
	for _, test := range []struct {
		kind *kind
		free string
		fits bool
	}{
		{ringKind, "mla-0 mla-2 mla-3 mla-4", true},
		{ringKind, "mla-0 mla-1 mla-3 mla-4 mla-6 mla-7", false}, // the expression sees an end where the ring closes
		{blockKind, "mesh-0 mesh-1 mesh-2 mesh-3 mesh-4", true},
		{blockKind, "mesh-0 mesh-1 mesh-2 mesh-3 mesh-5", false},
		{plainKind, "mla-0 mla-7", true},
		{plainKind, "mla-0", false},
	} {
		require.Equal(t, test.fits, test.kind.fits(strings.Fields(test.free)), "%s of %s", test.kind.name, test.free)
	}
}
