// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/cel"
)

// fourInARow is a scenario with a CEL constraint, an attribute constraint, a
// selector and devices in use.
func fourInARow(opts ...Option) scenario {
	var shared []resourceapi.Device
	for i := range 3 {
		shared = append(shared, newDevice(fmt.Sprintf("shared-%d", i), attrs{"index": 20 + i}))
	}
	return scenario{
		slices: []*sliceBuilder{slice("1", ring(8)...), slice("2", shared...).pool("pool-2", 1, 1).everywhere()},
		inUse:  []string{"mla-1"},
		claims: []*claimBuilder{
			claim("a").want("row", 4, index+" >= 0").distinct(driver+"/index").cel("row").define("row", inARow),
			claim("b").want("one", 1),
		},
		opts: opts,
	}
}

var wantFourInARow = []string{"row=mla-2", "row=mla-3", "row=mla-4", "row=mla-5", "one=mla-0"}

func TestInputsAreNotModified(t *testing.T) {
	s := fourInARow()
	a := s.allocator(t)
	node, claims := s.onNode(), s.apiClaims()
	slicesBefore, claimsBefore, nodeBefore := copies(a.allSlices), copies(claims), node.DeepCopy()
	stateBefore := a.state.AllocatedDevices.Clone()
	results, err := a.Allocate(t.Context(), node, claims)
	require.NoError(t, err)
	require.Equal(t, wantFourInARow, devicesOf(results))
	require.Empty(t, cmp.Diff(slicesBefore, a.allSlices))
	require.Empty(t, cmp.Diff(claimsBefore, claims))
	require.Empty(t, cmp.Diff(nodeBefore, node))
	require.Equal(t, stateBefore, a.state.AllocatedDevices)
}

func copies[T interface{ DeepCopy() T }](objects []T) []T {
	result := make([]T, len(objects))
	for i, object := range objects {
		result[i] = object.DeepCopy()
	}
	return result
}

// One allocator serves any number of nodes, one after the other and at once. No
// call sees another: each has its own answer.
func TestOneAllocatorManyCalls(t *testing.T) {
	s := fourInARow()
	s.slices = append(s.slices, slice("3", ring(4)...).onNode("node-2").pool("node-2", 1, 1))
	s.opts = []Option{WithReasons()}
	a, claims := s.allocator(t), s.apiClaims()
	check := func(ctx context.Context) {
		for node, want := range map[string][]string{
			nodeName: wantFourInARow,
			"node-2": {"row=mla-0", "row=mla-1", "row=mla-2", "row=mla-3", "one=shared-0"},
			"node-3": nil, // the three devices that are everywhere
		} {
			results, err := a.Allocate(ctx, newNode(node), claims)
			if diff := cmp.Diff(want, devicesOf(results)); diff != "" || (err == nil) != (want != nil) {
				t.Errorf("%s: %v%s", node, err, diff)
			}
		}
	}
	check(t.Context())
	check(t.Context())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() { check(context.Background()) })
	}
	group.Wait()
}

func TestNewAllocatorUsesSharedEnvironment(t *testing.T) {
	require.Same(t, scenario{}.allocator(t).environment, scenario{}.allocator(t).environment)
	own := environmentWith(t, cel.Config{})
	require.Same(t, own, scenario{opts: []Option{WithEnvironment(own)}}.allocator(t).environment)
}

func TestEndedContext(t *testing.T) {
	cause := errors.New("the pod was deleted")
	past := time.Now().Add(-time.Second)
	for name, test := range map[string]struct {
		context func() (context.Context, context.CancelFunc)
		want    []error
		message string
	}{
		"cancelled": {
			func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) },
			[]error{context.Canceled}, "filter operation aborted: context canceled",
		},
		"custom cause": {
			func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(t.Context())
				return ctx, func() { cancel(cause) }
			},
			[]error{context.Canceled, cause}, "filter operation aborted: context canceled: the pod was deleted",
		},
		"deadline": {
			func() (context.Context, context.CancelFunc) { return context.WithDeadline(t.Context(), past) },
			[]error{context.DeadlineExceeded}, "filter operation aborted: context deadline exceeded",
		},
		"deadline with cause": {
			func() (context.Context, context.CancelFunc) {
				return context.WithDeadlineCause(t.Context(), past, cause)
			},
			[]error{context.DeadlineExceeded, cause}, "filter operation aborted: context deadline exceeded: the pod was deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := test.context()
			cancel()
			s := fourInARow(WithReasons())
			results, err := s.allocator(t).Allocate(ctx, s.onNode(), s.apiClaims())
			require.Nil(t, results)
			require.EqualError(t, err, test.message)
			for _, want := range test.want {
				require.ErrorIs(t, err, want)
			}
			require.ErrorIs(t, err, ctx.Err())
			require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
		})
	}
}

// cancelAfter is an Observer that cancels after some evaluations.
type cancelAfter struct {
	cel.Observer
	evaluations int
	cancel      context.CancelCauseFunc
}

func (c *cancelAfter) ObserveCompilation(string, bool, error) {}

func (c *cancelAfter) ObserveEvaluation(string, uint64, error) {
	if c.evaluations--; c.evaluations == 0 {
		c.cancel(errors.New("enough"))
	}
}

func TestContextEndsDuringSearch(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	seen := &cancelAfter{evaluations: 3, cancel: cancel}
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(8)...)},
		claims: []*claimBuilder{claim("c").want("x", 4).cel("never").define("never", unread)},
		opts:   []Option{WithEnvironment(environmentWith(t, cel.Config{Observer: seen}))},
	}
	a := s.allocator(t)
	_, err := a.Allocate(ctx, s.onNode(), s.apiClaims())
	require.EqualError(t, err, "filter operation aborted: context canceled: enough")
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, int64(3), a.Stats().Evaluations)
}

// watched is a context that ends as soon as somebody waits for that, as evaluations
// of expressions do.
type watched struct {
	context.Context
	cancel func()
}

func (w watched) Done() <-chan struct{} {
	w.cancel()
	return w.Context.Done()
}

func cancelledWhenWatched(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	return watched{ctx, func() { cancel(cause) }}
}

// A context that ends while an expression is evaluated stops the evaluation.
func TestContextEndsDuringEvaluation(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{slice("1", ring(16)...)},
		claims: []*claimBuilder{claim("c").want("x", 16).cel("slow").
			define("slow", "devices.slice(0, 16).all(a, devices.all(b, devices.all(c, a == b || b != c || a != c)))")},
	}.search(t)
	s.ctx = cancelledWhenWatched(t, nil)
	c, r := s.celConstraints[0], s.requests[0][0][0]
	satisfied, err := r.decide()
	require.NoError(t, err)
	require.True(t, satisfied)
	for i, candidate := range s.inventory.Candidates {
		added, err := c.Add(&r.Request, candidate)
		if i < 15 {
			require.NoError(t, err)
			require.True(t, added)
			continue
		}
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "claim default/c, constraint slow, node node-1, devices [mla.example.com/pool-1/mla-0, ")
		require.ErrorContains(t, err, "evaluation interrupted: context canceled")
		require.Len(t, c.members, 15)
	}
}

func TestStats(t *testing.T) {
	for name, test := range map[string]struct {
		claims []*claimBuilder
		want   Stats
	}{
		"no claims": {nil, Stats{Steps: 1}},
		// One a device, and one each at the end of the requests and of the claims.
		"found at once": {[]*claimBuilder{claim("c").want("x", 4)}, Stats{Steps: 4 + 2}},
		"found, with constraint": {
			[]*claimBuilder{claim("c").want("x", 4).cel("row").define("row", inARow)},
			Stats{Steps: 4 + 2, SetsAccepted: 1, SetsProven: 1, TableEvaluations: 6, TableBuilds: 1, Cost: 24, Cuts: 2},
		},
		"found, not at once": {
			[]*claimBuilder{claim("c").want("x", 2).cel("later").define("later", inARow+" && "+indices+".min() == 2")},
			Stats{Steps: 4, SetsAccepted: 1, SetsProven: 1, TableEvaluations: 6, TableBuilds: 1, Cost: 24, Cuts: 11},
		},
		"never": {
			[]*claimBuilder{claim("c").want("x", 4).cel("never").define("never", "false")},
			Stats{Steps: 1, Cuts: 1},
		},
		// All 15 sets of 4 of 6 are evaluated. Smaller sets are extended if enough devices
		// come after their last one.
		"never, and unread": {
			[]*claimBuilder{claim("c").want("x", 4).cel("never").define("never", unread)}, Stats{Steps: 1 + 6 + 12 + 16, Evaluations: 15, Cost: 15 * 32},
		},
		"two constraints": {
			[]*claimBuilder{claim("c").want("x", 4).cel("row").cel("never").define("row", inARow+" && devices.slice(0, 1).map(d, d.attributes['"+driver+"'].index).size() == 1").define("never", unread)},
			// The one that is read is asked first: the other need not be.
			Stats{Steps: 10, Evaluations: 3 + 3, SetsAccepted: 3, TableEvaluations: 6, TableBuilds: 1, Cost: 651, Cuts: 6},
		},
		"error": {
			[]*claimBuilder{claim("c").want("x", 1).want("y", 1, "1 / 0 == 1")}, Stats{Steps: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenario{slices: []*sliceBuilder{slice("1", ring(6)...)}, claims: test.claims}
			a := s.allocator(t)
			require.Zero(t, a.Stats())
			want := test.want
			before := Stats{}
			for range 3 {
				_, stats, _ := a.AllocateWithStats(t.Context(), s.onNode(), s.apiClaims())
				require.Equal(t, want, a.Stats())
				require.Equal(t, want.minus(before), stats)
				before = want
				if test.want.Evaluations+test.want.Cuts > 0 {
					want.CacheHits++
					want.AnswersKnown++
				} else {
					want.Steps += test.want.Steps
				}
			}
		})
	}
}

// Slices are sorted into those with and without a node once; both kinds are
// served together.
func TestLocalAndSharedDevices(t *testing.T) {
	s := scenario{
		slices: []*sliceBuilder{
			slice("1", newDevice("shared", nil)).pool("b", 1, 1).everywhere(),
			slice("2", newDevice("local", nil)).pool("c", 1, 1),
			slice("3", newDevice("other", nil)).pool("a", 1, 1).onNode("node-2"),
		},
		claims: []*claimBuilder{claim("c").wantAll("x")},
	}
	s.requireDevices(t, "x=shared", "x=local")
	s.node = newNode("node-2")
	s.requireDevices(t, "x=other", "x=shared")
	s.node = newNode("node-3")
	s.requireDevices(t, "x=shared")
}

// Devices in use are told apart by driver and pool.
func TestAllocatedState(t *testing.T) {
	scenario{
		slices: []*sliceBuilder{
			slice("1", newDevice("a", nil)), slice("2", newDevice("a", nil)).pool("pool-2", 1, 1),
			slice("3", newDevice("a", nil)).driver("other.example.com"),
		},
		inUse:  []string{"a"},
		claims: []*claimBuilder{claim("c").wantAll("x", "device.driver == 'other.example.com'").want("y", 1)},
	}.requireDevices(t, "x=a", "y=a")
	results, err := scenario{
		slices: []*sliceBuilder{slice("1", newDevice("a", nil)), slice("2", newDevice("a", nil)).pool("pool-2", 1, 1)},
		inUse:  []string{"a"},
		claims: []*claimBuilder{claim("c").want("x", 1)},
	}.allocate(t)
	require.NoError(t, err)
	require.Equal(t, []resourceapi.DeviceRequestAllocationResult{{Request: "x", Driver: driver, Pool: "pool-2", Device: "a"}}, results[0].Devices.Results)
}
