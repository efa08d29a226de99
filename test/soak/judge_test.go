// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

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
		{"grid", "mesh-0 mesh-1 mesh-4 mesh-5", ""},
		{"grid", "mesh-0 mesh-1 mesh-2 mesh-3", "no set of a grid"},
		{"line", "mesh-4 mesh-5 mesh-6", ""},
		{"line", "mesh-2 mesh-3 mesh-4", "no set of a line"},
		{"row", "mesh-4 mesh-5 mesh-7", ""},
		{"row", "mesh-3 mesh-4 mesh-5", "no set of a row"},
		{"block", "mesh-0 mesh-1 mesh-2 mesh-3 mesh-4 mesh-5 mesh-6 mesh-7", ""},
		{"block", "mesh-0 mesh-1 mesh-2 mesh-3 mesh-4 mesh-5 mesh-6 mesh-8", "no set of a block"},
		{"plain", "mesh-4 mesh-9", ""},
		{"plain", "mesh-4", "no set of a plain"},
		{"stock", "mesh-1 mesh-2@elsewhere", "two nodes"},
		{"other", "mesh-1", "is of no kind"},
	} {
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{kindLabel: test.kind}}}
		claim.Status.Allocation = &resourceapi.AllocationResult{}
		for device := range strings.FieldsSeq(test.devices) {
			name, pool, _ := strings.Cut(device, "@")
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
				Driver: mesh.Drivers()[0], Pool: pool, Device: name,
			})
		}
		got := judge(claim)
		require.True(t, test.want == "" && got == "" || test.want != "" && strings.Contains(got, test.want), "%s %s: %s", test.kind, test.devices, got)
	}
}
