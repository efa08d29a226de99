// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/corpus"
)

// publishing is one way to order the devices of a machine in slices.
type publishing struct {
	order  string
	slices func(devices []resourceapi.Device) []*sliceBuilder
}

func publishings() []publishing {
	one := func(devices []resourceapi.Device) []*sliceBuilder { return []*sliceBuilder{slice("1", devices...)} }
	return []publishing{
		{"ascending", one},
		{"descending", func(devices []resourceapi.Device) []*sliceBuilder {
			slices.Reverse(devices)
			return one(devices)
		}},
		{"in eight pools", func(devices []resourceapi.Device) (published []*sliceBuilder) {
			const pools = 8
			for pool := range pools {
				var own []resourceapi.Device
				for i := pool; i < len(devices); i += pools {
					own = append(own, devices[i])
				}
				published = append(published, slice(fmt.Sprint(pool), own...).Pool(fmt.Sprint("pool-", pool), 1, 1))
			}
			return published
		}},
		{"shuffled", func(devices []resourceapi.Device) []*sliceBuilder {
			rand.New(rand.NewPCG(1, uint64(len(devices)))).Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
			return one(devices)
		}},
	}
}

// spelled returns a claim with one spelling of a shape, and its devices. If possible is false, too few devices remain.
func spelled(s corpus.Spelling, p publishing, possible bool) scenario {
	devices := corpus.SpellingDevices(s.Machine)
	if !possible {
		for i := len(devices) - 1; i >= 0; i-- {
			if s.Gone(i) {
				devices = slices.Delete(devices, i, i+1)
			}
		}
	}
	return scenario{fixture.Scenario{Slices: p.slices(devices), Claims: []*claimBuilder{claim("c").Want("r", int64(s.Size)).Define("shape", s.Text).Cel("shape")}}}
}

// A shape can be written as several expressions (spellings). For each spelling and order of devices, the search finds a set or
// proves that no set exists, in few steps and without evaluating a set. Unless the run is nightly or CELSET_SPELLINGS names a
// file, each spelling is tried on one machine and in one order only. The file gets the steps and time of each search.
func TestSpellings(t *testing.T) {
	var log *os.File
	if name := os.Getenv("CELSET_SPELLINGS"); name != "" {
		var err error
		log, err = os.Create(name)
		require.NoError(t, err)
		defer func() { require.NoError(t, log.Close()) }()
	}
	some := !cases.Nightly() && log == nil
	ordinals := map[string]int{}
	for _, s := range corpus.Spellings() {
		// The ordinal is the same for both machines.
		ordinal := ordinals[fmt.Sprint(s.Shape, s.Machine)]
		ordinals[fmt.Sprint(s.Shape, s.Machine)]++
		t.Run(fmt.Sprintf("%s of %d/%s", s.Shape, s.Machine, s.Text), func(t *testing.T) {
			for j, p := range publishings() {
				if some && ((ordinal%2 == 0) != (s.Machine == 64) || (ordinal/2+j)%4 != 0) {
					continue
				}
				for _, possible := range []bool{true, false} {
					if s.Gone == nil && !possible {
						continue
					}
					sc := spelled(s, p, possible)
					a := sc.allocator(t)
					started := time.Now()
					results, err := a.Allocate(t.Context(), sc.OnNode(), sc.APIClaims())
					took := time.Since(started)
					stats := a.Stats()
					if log != nil {
						_, _ = fmt.Fprintf(log, "%s\t%d\t%s\t%t\t%d\t%v\t%s\n", s.Shape, s.Machine, p.order, possible, stats.Steps, took.Round(10*time.Microsecond), s.Text)
					}
					require.NoError(t, err, p.order)
					require.Equal(t, possible, results != nil, p.order)
					require.LessOrEqual(t, stats.Steps, s.Steps, "%s, possible: %t", p.order, possible)
					require.Zero(t, stats.Evaluations, p.order)
				}
			}
		})
	}
}
