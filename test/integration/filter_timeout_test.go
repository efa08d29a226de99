// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSearchThatTakesTooLongHoldsNobodyUp has a pod for which no end of the search
// is in sight: no square leaves 3 when divided by 7, but a search that is not told
// so has to try 600 million sets. The others are in the queue of the same scheduler,
// and the pod is tried again all the time.
func TestSearchThatTakesTooLongHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	l := newLab(t, "endless", 1)
	driver := l.ring(t, 32).Drivers()[0]
	sum := fmt.Sprintf("devices.map(d, d.attributes[%q].index).sum()", driver)
	endless := fmt.Sprintf("(%[1]s * %[1]s) %% 7 == 3", sum)

	l.run(t, "endless", hastyProfile, request("mla", driver, 16), constrained("square", endless))
	l.requireRefused(t, "endless", "node "+l.nodes[0]+": timed out trying to allocate devices")

	for i, profile := range []string{hastyProfile, celsetProfile, stockProfile, allProfile, hastyProfile} {
		name := fmt.Sprintf("other-%d", i)
		l.run(t, name, profile, variant{constrained: profile == celsetProfile || profile == hastyProfile}.
			claim(constrained("ring4", contiguous(driver, 4)), request("mla", driver, 4))...)
		l.requireRunning(t, name)
	}
	l.requireRefused(t, "endless")
	require.Len(t, l.devicesOf(t, "other-4"), 4)
}
