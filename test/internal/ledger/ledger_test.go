// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func claim(name string, devices ...string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	if len(devices) == 0 {
		return c
	}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Driver: "driver", Pool: "pool", Device: device})
	}
	return c
}

func noThirteen(c *resourceapi.ResourceClaim) string {
	if DevicesOf(c)[0] == "driver/pool/13" {
		return "has an unlucky device"
	}
	return ""
}

func TestLedger(t *testing.T) {
	tests := []struct {
		name   string
		events []watch.Event
		want   []string
		inUse  int
	}{
		{name: "one after the other", inUse: 2, events: []watch.Event{
			{Type: watch.Added, Object: claim("a", "0", "1")},
			{Type: watch.Modified, Object: claim("a")},
			{Type: watch.Added, Object: claim("b", "1", "2")},
			{Type: watch.Deleted, Object: claim("b", "1", "2")},
			{Type: watch.Added, Object: claim("c", "1", "2")},
		}},
		{name: "the same devices", inUse: 2, events: []watch.Event{
			{Type: watch.Added, Object: claim("a", "0", "1")},
			{Type: watch.Modified, Object: claim("a", "0", "1")},
		}},
		{
			name: "at the same time", inUse: 3, want: []string{"claim b at version : gets device driver/pool/1, which claim a has"},
			events: []watch.Event{{Type: watch.Added, Object: claim("a", "0", "1")}, {Type: watch.Added, Object: claim("b", "1", "2")}},
		},
		{
			name: "another set", inUse: 2, want: []string{"claim a at version : changes its devices from [driver/pool/0 driver/pool/1] to [driver/pool/0 driver/pool/2]"},
			events: []watch.Event{{Type: watch.Added, Object: claim("a", "0", "1")}, {Type: watch.Modified, Object: claim("a", "0", "2")}},
		},
		{
			name: "judged", inUse: 1, want: []string{"claim a at version : has an unlucky device"},
			events: []watch.Event{{Type: watch.Added, Object: claim("a", "13")}},
		},
		{
			name: "gap", want: []string{"versions of claims are missing: resource version too old"},
			events: []watch.Event{{Type: watch.Error, Object: &metav1.Status{Message: "resource version too old"}}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := New(noThirteen)
			for _, event := range test.events {
				l.Enter(event)
			}
			require.Equal(t, test.want, l.Entries().Violations)
			require.Equal(t, test.inUse, l.Entries().InUse)
			if len(test.want) == 0 {
				require.NoError(t, l.Entries().Err())
				return
			}
			require.EqualError(t, l.Entries().Err(), strings.Join(test.want, "\n"))
		})
	}
}

// TestWhatIsUsedTogetherIsAddedUp allocates parts of a chip. Part n uses n of the chip's 5 slots, so the ledger must report
// parts that together use more than 5.
func TestWhatIsUsedTogetherIsAddedUp(t *testing.T) {
	l := New(noThirteen)
	l.AddUp(func(result *resourceapi.DeviceRequestAllocationResult) Use {
		slots, err := strconv.ParseInt(result.Device, 10, 64)
		require.NoError(t, err)
		return Use{Of: result.Pool, Amount: slots, All: 5}
	})
	l.Enter(watch.Event{Type: watch.Added, Object: claim("a", "4")})
	l.Enter(watch.Event{Type: watch.Modified, Object: claim("a")})
	l.Enter(watch.Event{Type: watch.Added, Object: claim("b", "2", "3")})
	require.Empty(t, l.Entries().Violations)
	l.Enter(watch.Event{Type: watch.Added, Object: claim("c", "1")})
	require.Equal(t, []string{"claim c at version : uses 1 of pool, of which 6 of 5 are in use then"}, l.Entries().Violations)
	l.Enter(watch.Event{Type: watch.Deleted, Object: claim("b", "2", "3")})
	l.Enter(watch.Event{Type: watch.Added, Object: claim("d", "4")})
	require.Len(t, l.Entries().Violations, 1)
}

// TestSharesOfADeviceAreToldApart checks that the ledger reports a share of a device in two claims, but accepts different
// shares in different claims.
func TestSharesOfADeviceAreToldApart(t *testing.T) {
	l := New(noThirteen)
	for _, name := range []string{"a", "b"} {
		c := claim(name, "shared")
		c.Status.Allocation.Devices.Results[0].ShareID = new(types.UID("share-of-" + name))
		l.Enter(watch.Event{Type: watch.Added, Object: c})
	}
	require.Empty(t, l.Entries().Violations)
	require.Equal(t, 2, l.Entries().InUse)
}
