// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// version is a version of a claim of plain pods with devices of a ring.
func version(name string, devices ...int) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{kindLabel: "plain"}}}
	if len(devices) > 0 {
		claim.Status.Allocation = &resourceapi.AllocationResult{}
	}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Driver: ring.Drivers()[0], Pool: "node", Device: fmt.Sprintf("mla-%d", device),
		})
	}
	return claim
}

func TestLedgerFindsFaults(t *testing.T) {
	type events = []watch.Event
	for name, tc := range map[string]struct {
		events events
		want   string
	}{
		"one after the other": {events: events{
			{Type: watch.Added, Object: version("a", 0, 1)}, {Type: watch.Modified, Object: version("a")},
			{Type: watch.Added, Object: version("b", 1, 2)}, {Type: watch.Deleted, Object: version("b", 1, 2)},
			{Type: watch.Added, Object: version("a", 2, 3)},
		}},
		"the same": {events: events{{Type: watch.Added, Object: version("a", 0, 1)}, {Type: watch.Modified, Object: version("a", 0, 1)}}},
		"a device twice": {
			events: events{{Type: watch.Added, Object: version("a", 0, 1)}, {Type: watch.Added, Object: version("b", 1, 2)}},
			want:   "gets device mla.example.com/node/mla-1, which claim a has",
		},
		"others for some": {
			events: events{{Type: watch.Added, Object: version("a", 0, 1)}, {Type: watch.Modified, Object: version("a", 0, 2)}},
			want:   "its devices change from",
		},
		"too few": {events: events{{Type: watch.Added, Object: version("a", 0)}}, want: "has [mla-0], which is no set of a plain"},
		"gap":     {events: events{{Type: watch.Error, Object: &metav1.Status{Code: 410}}}, want: "events are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			for _, event := range tc.events {
				l.enter(event)
			}
			if tc.want == "" {
				require.NoError(t, l.fault())
				return
			}
			require.ErrorContains(t, l.fault(), tc.want)
		})
	}
}

func TestKindsKnowTheirSets(t *testing.T) {
	require.True(t, ringKind.fits([]string{"mla-0", "mla-2", "mla-3", "mla-4"}))
	require.False(t, ringKind.fits([]string{"mla-0", "mla-1", "mla-3", "mla-4", "mla-6", "mla-7"}), "the expression sees an end where the ring closes")
	require.True(t, blockKind.fits([]string{"mesh-0", "mesh-1", "mesh-2", "mesh-3", "mesh-4"}))
	require.False(t, blockKind.fits([]string{"mesh-0", "mesh-1", "mesh-2", "mesh-3", "mesh-5"}))
	require.True(t, plainKind.fits([]string{"mla-0", "mla-7"}))
	require.False(t, plainKind.fits([]string{"mla-0"}))
}
