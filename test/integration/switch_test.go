// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAllocatorArgumentDecidesWhoServesPlainClaims tells the allocators apart by
// what they say about the same claim: upstream's never has a reason.
func TestAllocatorArgumentDecidesWhoServesPlainClaims(t *testing.T) {
	t.Parallel()
	l := newLab(t, "switch", 1)
	driver := l.ring(t, 4).Drivers()[0]
	for _, tc := range []struct{ profile, want string }{
		{stockProfile, "cannot allocate all claims"},
		{celsetProfile, "cannot allocate all claims"},
		{allProfile, "request mla: 4 of 5 devices"},
	} {
		t.Run(tc.profile, func(t *testing.T) {
			l.run(t, tc.profile, tc.profile, request("mla", driver, 5))
			l.requireRefused(t, tc.profile, tc.want)
		})
	}
	t.Run("same devices", func(t *testing.T) {
		for _, profile := range []string{stockProfile, celsetProfile, allProfile} {
			name := profile + "-fits"
			l.run(t, name, profile, request("mla", driver, 3))
			l.requireRunning(t, name)
			require.Equal(t, []string{"mla-0", "mla-1", "mla-2"}, l.devicesOf(t, name))
			l.deletePod(t, name)
			l.requireFreed(t, name)
		}
	})
}

// TestAllocatorArgumentKeepsPlainClaimsFromTimingOut has a claim for one device
// more than there are. Upstream's allocator tries all sets and does not come to an
// end in time; ours counts.
func TestAllocatorArgumentKeepsPlainClaimsFromTimingOut(t *testing.T) {
	t.Parallel()
	const devices = 28
	l := newLab(t, "slow", 1)
	driver := l.ring(t, devices).Drivers()[0]
	l.run(t, "upstream", hastyProfile, request("mla", driver, devices+1))
	l.requireRefused(t, "upstream", "node "+l.nodes[0]+": timed out trying to allocate devices")
	l.deletePod(t, "upstream")

	l.run(t, "ours", allProfile, request("mla", driver, devices+1))
	l.requireRefused(t, "ours", "request mla: 28 of 29 devices")
}
