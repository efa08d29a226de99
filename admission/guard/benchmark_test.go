// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// BenchmarkJudge judges a write while 10,000 claims have devices. The time must not grow with the number of claims.
func BenchmarkJudge(b *testing.B) {
	const claims, perNode = 10_000, 8
	for name, kind := range map[string]struct {
		// pool is "chips" if the devices are partitions. result returns the nth device.
		pool   string
		result func(n int) resourceapi.DeviceRequestAllocationResult
	}{
		"whole devices of 1250 nodes": {"", func(n int) resourceapi.DeviceRequestAllocationResult {
			return result(fmt.Sprint("node-", n/perNode), fmt.Sprint(n%perNode))
		}},
		"whole devices of one pool": {"one", func(n int) resourceapi.DeviceRequestAllocationResult {
			return result("one", fmt.Sprint(n))
		}},
		"partitions of pools of 125": {"chips", func(n int) resourceapi.DeviceRequestAllocationResult {
			return result(fmt.Sprint("chips-", n%80), fmt.Sprint(n/80))
		}},
		"1000 shares of a device": {"shares", func(n int) resourceapi.DeviceRequestAllocationResult {
			r := share("0", 0, n)
			r.Pool = fmt.Sprint("shares-", n%10)
			return r
		}},
	} {
		b.Run(name, func(b *testing.B) {
			g, c := begin(Options{})
			slices := map[string]*resourceapi.ResourceSlice{}
			for n := range claims + 1 {
				r := kind.result(n)
				if slices[r.Pool] == nil {
					slices[r.Pool] = slice(r.Pool, "1", 1, func(*resourceapi.ResourceSliceSpec) {})
				}
				s := slices[r.Pool]
				if device := (resourceapi.Device{Name: r.Device}); len(s.Spec.Devices) == 0 || r.ShareID == nil {
					device.AllowMultipleAllocations = ptr.To(r.ShareID != nil)
					s.Spec.Devices = append(s.Spec.Devices, device)
				}
				if n < claims {
					c.store(g, "a", fmt.Sprint("claim-", n), n+1, r)
				}
			}
			for _, s := range slices {
				if kind.pool == "chips" {
					s.Spec.Pool.ResourceSliceCount = 2
					for i := range s.Spec.Devices {
						s.Spec.Devices[i].ConsumesCounters = []resourceapi.DeviceCounterConsumption{{CounterSet: "set", Counters: map[string]resourceapi.Counter{memory: {Value: amount(1)}}}}
					}
					g.SeeSlice(slice(s.Spec.Pool.Name, "sets", 2, func(s *resourceapi.ResourceSliceSpec) {
						s.SharedCounters = []resourceapi.CounterSet{{Name: "set", Counters: map[string]resourceapi.Counter{memory: {Value: amount(128)}}}}
					}))
				}
				g.SeeSlice(s)
			}
			w := aWrite("new", claims+1, kind.result(claims))
			require.Nil(b, g.Judge(b.Context(), w))
			require.Zero(b, c.reads, "it knows all")
			b.ResetTimer()
			for b.Loop() {
				if g.Judge(b.Context(), w) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}
