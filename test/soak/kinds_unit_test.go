// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/celset/celset/internal/testing/ledger"
)

func allocated(name, kind string, devices ...int) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{kindLabel: kind},
	}}
	if len(devices) == 0 {
		return claim
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range devices {
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Driver: mesh.Drivers()[0], Pool: "node-0", Device: fmt.Sprintf("mesh-%d", device),
		})
	}
	return claim
}

func TestJudge(t *testing.T) {
	tests := []struct {
		name   string
		events []watch.Event
		want   []string // parts of violations
		inUse  int
	}{
		{name: "one after the other", inUse: 2, events: []watch.Event{
			{Type: watch.Added, Object: allocated("a", "stock", 0, 1)},
			{Type: watch.Modified, Object: allocated("a", "stock")},
			{Type: watch.Added, Object: allocated("b", "plain", 1, 2)},
			{Type: watch.Deleted, Object: allocated("b", "plain", 1, 2)},
			{Type: watch.Added, Object: allocated("c", "plain", 1, 2)},
		}},
		{name: "no block", inUse: 4, want: []string{"no set of a grid"}, events: []watch.Event{
			{Type: watch.Added, Object: allocated("a", "grid", 0, 1, 2, 3)},
		}},
		{name: "a block", inUse: 4, events: []watch.Event{{Type: watch.Added, Object: allocated("a", "grid", 0, 1, 4, 5)}}},
		{name: "a line", inUse: 3, events: []watch.Event{{Type: watch.Added, Object: allocated("a", "line", 4, 5, 6)}}},
		{name: "around a corner", inUse: 3, want: []string{"no set of a line"}, events: []watch.Event{
			{Type: watch.Added, Object: allocated("a", "line", 2, 3, 4)},
		}},
		{name: "one row", inUse: 3, events: []watch.Event{{Type: watch.Added, Object: allocated("a", "row", 4, 5, 7)}}},
		{name: "two rows", inUse: 3, want: []string{"no set of a row"}, events: []watch.Event{
			{Type: watch.Added, Object: allocated("a", "row", 3, 4, 5)},
		}},
		{name: "too few", inUse: 1, want: []string{"no set of a plain"}, events: []watch.Event{
			{Type: watch.Added, Object: allocated("a", "plain", 4)},
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := ledger.New(judge)
			for _, event := range test.events {
				l.Enter(event)
			}
			got := l.Entries()
			require.Len(t, got.Violations, len(test.want))
			for i, want := range test.want {
				require.Contains(t, got.Violations[i], want)
			}
			require.Equal(t, test.inUse, got.InUse)
		})
	}
}
