// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package perf

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/shape"
)

// unread means ring-12-4 and is written so that nothing can be told from a part of a
// set: lists of lists are not read.
const unread = "[devices.map(d, d.attributes['mla.example.com'].index)].flatten().max() - " +
	"[devices.map(d, d.attributes['mla.example.com'].index)].flatten().min() == 3"

func ringOfTwelve(tb testing.TB) shape.Scenario {
	tb.Helper()
	for _, s := range shape.Scenarios() {
		if s.Name == "ring-12-4" {
			s.Expression = unread
			return s
		}
	}
	tb.Fatal("no scenario ring-12-4")
	return shape.Scenario{}
}

// BenchmarkUnread compares the search with the reference where it can't do better:
// what it costs to have tried. Both have a compiled expression and nothing in the
// cache, and they take turns.
func BenchmarkUnread(b *testing.B) {
	s := ringOfTwelve(b)
	h := newHardware(b, s, 1)
	for _, o := range s.Occupancies {
		b.Run("layout="+o.Name, func(b *testing.B) {
			f := h.occupied([]shape.Set{o.InUse})
			claim, err := f.Claim()
			if err != nil {
				b.Fatal(err)
			}
			f.inTurn(b, claim)
		})
	}
}

func (f *fleet) inTurn(b *testing.B, claim *resourceapi.ResourceClaim) {
	ctx := b.Context()
	a, err := f.celset(ctx, newCache())
	if err != nil {
		b.Fatal(err)
	}
	if _, err := f.verify(ctx, a, claim); err != nil {
		b.Fatal(err)
	}
	allocate := func(a *allocator.Allocator, err error) error {
		if err != nil {
			return err
		}
		return f.allocate(ctx, a, claim)
	}
	inTurn(b, func() error { return allocate(f.celset(ctx, newCache())) }, func() error { return allocate(f.exhaustive(ctx)) })
}

// BenchmarkUnreadSteps measures what a search takes beside its evaluations, where all sets are
// evaluated and none will do: evaluations are timed, and what is left from the start of the first
// one to the end of the last one is divided by the steps. What is done once for a search is not
// among it, nor is what measuring takes. The metrics are the middles of all searches. Each has a cache of its own.
func BenchmarkUnreadSteps(b *testing.B) {
	for _, test := range []struct {
		name          string
		devices, want int
	}{{"of=12/want=4", 12, 4}, {"of=16/want=4", 16, 4}, {"of=16/want=6", 16, 6}, {"of=20/want=3", 20, 3}} {
		b.Run(test.name, func(b *testing.B) { benchmarkSteps(b, test.devices, test.want) })
	}
}

// stopwatch adds up how long evaluations take, and knows when the first one began and the last
// one ended.
type stopwatch struct {
	took        time.Duration
	evaluations int64
	first, last time.Time
}

func (*stopwatch) ObserveCompilation(string, bool, error)          {}
func (s *stopwatch) ObserveEvaluation(string, uint64, error)       { s.evaluations++ }
func (s *stopwatch) ObserveDuration(_ string, taken time.Duration) { s.took += taken }

func (s *stopwatch) Now() time.Time {
	s.last = time.Now()
	if s.first.IsZero() {
		s.first = s.last
	}
	return s.last
}

// ofMeasuring is what it takes to measure an evaluation, beside what is measured.
func ofMeasuring() time.Duration {
	const times = 100_000
	var watch interface {
		cel.Observer
		cel.Timer
	} = &stopwatch{}
	began := time.Now()
	for range times {
		start := watch.Now()
		watch.ObserveDuration("", watch.Now().Sub(start))
		watch.ObserveEvaluation("", 0, nil)
	}
	return (time.Since(began) - watch.(*stopwatch).took) / times
}

func benchmarkSteps(b *testing.B, devices, want int) {
	watch := &stopwatch{}
	environment, err := device.NewEnvironment(cel.Config{Observer: watch})
	if err != nil {
		b.Fatal(err)
	}
	row, c := meshOf(b, 1, devices), constrained(b, want, "[devices.map(d, "+column+")].flatten().max() < 0")
	selectors := dracel.NewCache(10, dracel.Features{EnableConsumableCapacity: true})
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	measuring := ofMeasuring()
	var steps, evaluations int64
	var beside, evaluating []float64
	for b.Loop() {
		*watch = stopwatch{}
		a, err := allocator.NewAllocator(b.Context(), features, structured.AllocatedState{}, class, row, selectors,
			allocator.WithEnvironment(environment), allocator.WithCostBudget(math.MaxUint64), allocator.WithStepBudget(math.MaxInt64))
		if err != nil {
			b.Fatal(err)
		}
		results, err := a.Allocate(b.Context(), node, []*resourceapi.ResourceClaim{c})
		if err != nil || results != nil {
			b.Fatal("allocated: ", results != nil, ", error: ", err)
		}
		took := watch.last.Sub(watch.first) - watch.took - measuring*time.Duration(watch.evaluations)
		beside = append(beside, float64(took)/float64(a.Stats().Steps))
		evaluating = append(evaluating, float64(watch.took)/float64(a.Stats().Steps))
		steps += a.Stats().Steps
		evaluations += watch.evaluations
	}
	b.ReportMetric(middle(beside), "beside-ns/step")
	b.ReportMetric(middle(evaluating), "evaluating-ns/step")
	b.ReportMetric(float64(evaluations)/float64(steps), "evaluations/step")
}

// TestUnreadIsUnread: each set is evaluated, up to the answer.
func TestUnreadIsUnread(t *testing.T) {
	s := ringOfTwelve(t)
	h := newHardware(t, s, 1)
	for _, o := range s.Occupancies {
		f := h.occupied([]shape.Set{o.InUse})
		claim, err := f.Claim()
		require.NoError(t, err)
		a, err := f.celset(t.Context(), newCache())
		require.NoError(t, err)
		f.requireVerified(t, a, claim)
		require.Equal(t, f.sets().Int64(), a.Stats().Evaluations, o.Name)
	}
}
