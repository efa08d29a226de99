// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/testing/corpus"
)

// orders are those in which the devices of a machine are published.
var orders = []struct {
	name    string
	publish func(devices []resourceapi.Device) []*sliceBuilder
}{
	{"ascending", func(devices []resourceapi.Device) []*sliceBuilder { return []*sliceBuilder{slice("1", devices...)} }},
	{"reversed", func(devices []resourceapi.Device) []*sliceBuilder {
		slices.Reverse(devices)
		return []*sliceBuilder{slice("1", devices...)}
	}},
	{"interleaved", func(devices []resourceapi.Device) (published []*sliceBuilder) {
		const pools = 8
		for pool := range pools {
			var own []resourceapi.Device
			for i := pool; i < len(devices); i += pools {
				own = append(own, devices[i])
			}
			published = append(published, slice(fmt.Sprint(pool), own...).pool(fmt.Sprint("pool-", pool), 1, 1))
		}
		return published
	}},
	{"shuffled", func(devices []resourceapi.Device) []*sliceBuilder {
		rand.New(rand.NewPCG(1, uint64(len(devices)))).Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
		return []*sliceBuilder{slice("1", devices...)}
	}},
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(1, &u) // thread
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSpellings: whichever way people write a shape, and in whichever order devices are published, a set is found, or that there is none, in few steps.
func TestSpellings(t *testing.T) {
	runtime.LockOSThread()
	limit := 500 * time.Millisecond
	for _, s := range corpus.Spellings() {
		for _, o := range orders {
			for _, complete := range []bool{true, false} {
				devices := corpus.SpellingDevices(s.Machine)
				if !complete {
					var left []resourceapi.Device
					for i, d := range devices {
						if !s.Gone(i) {
							left = append(left, d)
						}
					}
					devices = left
				}
				sc := scenario{slices: o.publish(devices), claims: []*claimBuilder{claim("c").want("r", int64(s.Size)).define("x", s.Text).cel("x")}}
				a := sc.allocator(t)
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				started := cpu()
				results, err := a.Allocate(ctx, sc.onNode(), sc.apiClaims())
				took := cpu() - started
				cancel()
				stats := a.Stats()
				result := "none"
				if err != nil {
					result = err.Error()
				} else if results != nil {
					result = "found"
				}
				want := map[bool]string{true: "found", false: "none"}[complete]
				_ = want
				if len(result) > 30 {
					result = result[:30]
				}
				fmt.Fprintf(os.Stderr, "ROW\t%s\t%d\t%s\t%v\t%s\t%d\t%d\t%.2f\t%s\n", s.Shape, s.Machine, o.name, complete, result, stats.Steps, stats.Evaluations, took.Seconds()*1000, s.Text)
				_ = require.NoError
			}
		}
	}
}
