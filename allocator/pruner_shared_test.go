// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
)

// TestSharedDevicesOfOneRequestArePruned: CPUs that several claims have a part of, next to GPUs. Only
// where two requests may have the same of them, a set may have it twice, and is tried.
func TestSharedDevicesOfOneRequestArePruned(t *testing.T) {
	const (
		cpu  = "cpu.example.com"
		near = "devices.all(d, devices.all(o, d.attributes['resource.kubernetes.io'].numaNode == o.attributes['resource.kubernetes.io'].numaNode))"
	)
	var gpus, cpus []resourceapi.Device
	for i := range 8 {
		gpus = append(gpus, newDevice(fmt.Sprint("gpu-", i), attrs{"resource.kubernetes.io/numaNode": i / 4}))
	}
	for i := range 4 {
		d := newDevice(fmt.Sprint("cpu-", i), attrs{"resource.kubernetes.io/numaNode": i / 2})
		shared(&d)
		cpus = append(cpus, d)
	}
	for name, test := range map[string]struct {
		claim  *claimBuilder
		pruned bool
	}{
		"one request":              {claim("c").want("gpu", 2).want("cpu", 1).class(cpu).cel("near").define("near", near), true},
		"several of them":          {claim("c").want("gpu", 2).want("cpu", 2).class(cpu).cel("near").define("near", near), true},
		"CPUs first":               {claim("c").want("cpu", 2).class(cpu).want("gpu", 3).cel("near").define("near", near), true},
		"two requests for CPUs":    {claim("c").want("gpu", 2).want("cpu", 1).class(cpu).want("more", 1).class(cpu).cel("near").define("near", near), false},
		"two that can't be shared": {claim("c").want("gpu", 2).want("other", 1).want("cpu", 1).class(cpu).cel("near").define("near", near), true},
	} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			for range 40 {
				var inUse []string
				for i := range gpus {
					if random.IntN(2) == 0 {
						inUse = append(inUse, fmt.Sprint("gpu-", i))
					}
				}
				s := scenario{
					slices: []*sliceBuilder{slice("1", gpus...), slice("2", cpus...).driver(cpu)}, inUse: inUse,
					classes: []*resourceapi.DeviceClass{
						classOf(driver, "device.driver == '"+driver+"'"), classOf(cpu, "device.driver == '"+cpu+"'"),
					},
					claims: []*claimBuilder{test.claim},
				}
				want, _ := s.answer(t, WithExhaustiveSearch())
				got, stats := s.answer(t)
				require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
				if test.pruned {
					require.Zero(t, stats.Evaluations)
					require.LessOrEqual(t, stats.Steps, int64(12))
				} else if got.Results != nil {
					require.NotZero(t, stats.Evaluations)
				}
			}
		})
	}
}

// TestAllRefusedByAnAttributeIsAnError: of an alternative that wants all devices the search must not
// leave the error out that an attribute which they don't share is, whatever a CEL constraint would say
// of them. One that covers another alternative has no say in that.
func TestAllRefusedByAnAttributeIsAnError(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(4)...)},
		claims: []*claimBuilder{claim("c").
			firstAvailable("x", subAll("first"), subAll("second")).want("y", 1).
			match(driver+"/index").
			cel("other", "x/second", "y").define("other", "devices.size() > 1").
			cel("never", "x").define("never", indices+".sum() < 0")},
	}
	want, _ := s.answer(t, WithExhaustiveSearch())
	got, _ := s.answer(t)
	require.Contains(t, want.Err, "x/first")
	require.Empty(t, cmp.Diff(want.withoutReason(), got.withoutReason(), cmp.AllowUnexported(answer{})))
}
