// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// pairOfNeighbors is an expression for two devices in a row, whatever their driver.
const pairOfNeighbors = "devices.map(d, d.attributes[d.driver].index).max() - devices.map(d, d.attributes[d.driver].index).min() == 1"

// TestNodeWithThePreferredAlternativeWins scores nodes (KEP-4816): all of them
// have the last alternative, one has the second, another the first.
func TestNodeWithThePreferredAlternativeWins(t *testing.T) {
	forEachVariant(t, "prioritized", 4, func(t *testing.T, l *lab, v variant) {
		big, medium, small := l.family("big"), l.family("medium"), l.family("small")
		l.publish(t, newRing(t, small, 8), l.nodes...)
		l.publish(t, newRing(t, medium, 3), l.nodes[1])
		l.publish(t, newRing(t, big, 3), l.nodes[2])
		for _, driver := range []string{big.Driver, medium.Driver, small.Driver} {
			l.createClass(t, driver)
		}
		for _, want := range []struct{ pod, request, node string }{
			{"first", "mla/big", l.nodes[2]},
			{"second", "mla/medium", l.nodes[1]},
		} {
			l.run(t, want.pod, v.profile, v.claim(constrained("pair", pairOfNeighbors),
				firstAvailable("mla", alternative("big", big.Driver, 2), alternative("medium", medium.Driver, 2), alternative("small", small.Driver, 2)))...)
			l.requireRunning(t, want.pod)
			require.Equal(t, want.node, l.pod(t, want.pod).Spec.NodeName)
			for _, result := range l.claim(t, want.pod).Status.Allocation.Devices.Results {
				require.Equal(t, want.request, result.Request)
			}
		}
		// Other nodes than the preferred were suitable, and still are.
		l.run(t, "third", v.profile, firstAvailable("mla", alternative("big", big.Driver, 2), alternative("small", small.Driver, 2)))
		l.requireRunning(t, "third")
		require.Equal(t, "mla/small", l.claim(t, "third").Status.Allocation.Devices.Results[0].Request)
	})
}

// firstAvailable is a request with alternatives, the preferred one first.
func firstAvailable(name string, alternatives ...resourceapi.DeviceSubRequest) part {
	return func(claim *resourceapi.DeviceClaim) {
		claim.Requests = append(claim.Requests, resourceapi.DeviceRequest{Name: name, FirstAvailable: alternatives})
	}
}

func alternative(name, class string, count int64) resourceapi.DeviceSubRequest {
	return resourceapi.DeviceSubRequest{
		Name: name, DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: count,
	}
}
