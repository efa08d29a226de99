// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package search

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/allocator/internal/plan"
)

const (
	driver  = fixture.Driver
	color   = fixture.Color
	index   = fixture.Index
	indices = fixture.Indices
	inARow  = fixture.InARow
	unread  = fixture.Unread
)

var (
	claim     = fixture.Claim
	classOf   = fixture.ClassOf
	kind      = fixture.Kind
	newDevice = fixture.NewDevice
	oneIn     = fixture.OneIn
	ring      = fixture.Ring
	shared    = fixture.Shared
	slice     = fixture.Slice
	sub       = fixture.Sub
)

type (
	attrs        = fixture.Attrs
	claimBuilder = fixture.ClaimBuilder
	sliceBuilder = fixture.SliceBuilder
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scenario holds the claims, slices and options for a search.
type scenario fixture.Scenario

// given parses statements into a scenario. [fixture.Given] defines the statements.
func given(t *testing.T, statements string) scenario { return scenario(fixture.Given(t, statements)) }

// with returns a copy with one more option.
func (s scenario) with(option fixture.Option) scenario {
	s.Options = append(slices.Clone(s.Options), option)
	return s
}

// unbounded is an option that turns all bounds off, so that constraints are evaluated for every set.
func unbounded(o *plan.Options) { o.Unbounded = true }

// search returns the search that an allocator would run.
func (s scenario) search(t testing.TB) *Search {
	t.Helper()
	return s.plannedBy(t, fixture.Scenario(s).Planner(t))
}

func (s scenario) plannedBy(t testing.TB, planner *plan.Planner) *Search {
	t.Helper()
	on, err := planner.PlanFor(fixture.Scenario(s).APIClaims()).On(fixture.Scenario(s).OnNode())
	require.NoError(t, err)
	result, err := New(t.Context(), on, nil)
	require.NoError(t, err)
	return result
}

// searchIfValid returns the search for the scenario, or nil if a claim is refused before the search begins.
func (s scenario) searchIfValid(t testing.TB) *Search {
	t.Helper()
	on, err := fixture.Scenario(s).Planner(t).PlanFor(fixture.Scenario(s).APIClaims()).On(fixture.Scenario(s).OnNode())
	if err != nil {
		return nil
	}
	result, err := New(t.Context(), on, nil)
	if err != nil {
		return nil
	}
	return result
}

// watched is a context that ends when its Done channel is first requested. An evaluation of an expression requests the channel.
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
