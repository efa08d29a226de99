// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package allocator

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator/internal/fixture"
	"github.com/celset/celset/allocator/internal/plan"
	"github.com/celset/celset/allocator/internal/search"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	driver   = fixture.Driver
	nodeName = fixture.NodeName

	color     = fixture.Color
	index     = fixture.Index
	indices   = fixture.Indices
	inARow    = fixture.InARow
	inArc     = fixture.InArc
	inPairs   = fixture.InPairs
	indexOfD  = fixture.IndexOfD
	neighbors = fixture.Neighbors
	unread    = fixture.Unread
)

var (
	allOn   = fixture.AllOn
	listsOn = fixture.ListsOn

	alteredPod      = fixture.AlteredPod
	celSelectors    = fixture.CELSelectors
	claim           = fixture.Claim
	classOf         = fixture.ClassOf
	consuming       = fixture.Consuming
	definitionOf    = fixture.DefinitionOf
	devicesOf       = fixture.DevicesOf
	environmentWith = fixture.EnvironmentWith
	kind            = fixture.Kind
	mesh            = fixture.Mesh
	newDevice       = fixture.NewDevice
	newNode         = fixture.NewNode
	nodesWith       = fixture.NodesWith
	number          = fixture.Number
	onAny           = fixture.OnAny
	oneIn           = fixture.OneIn
	part            = fixture.Part
	partitioned     = fixture.Partitioned
	randomPod       = fixture.RandomPod
	randomReference = fixture.RandomReference
	ring            = fixture.Ring
	shared          = fixture.Shared
	slice           = fixture.Slice
	sub             = fixture.Sub
)

type (
	amounts      = fixture.Amounts
	attrs        = fixture.Attrs
	claimBuilder = fixture.ClaimBuilder
	classes      = fixture.Classes
	// option is the type of the results of the functions With….
	option       = fixture.Option
	sliceBuilder = fixture.SliceBuilder
)

// scenario holds the inputs of an allocation: node, slices, classes, claims and options.
type scenario struct{ fixture.Scenario }

// given parses statements into a scenario. [fixture.Given] defines the statements.
func given(t *testing.T, statements string) scenario { return scenario{fixture.Given(t, statements)} }

func randomScenario(t *rapid.T) scenario { return scenario{fixture.RandomScenario(t)} }

func (s scenario) allocator(t testing.TB) *Allocator {
	t.Helper()
	a, err := NewAllocator(t.Context(), ptr.Deref(s.Features, allOn), s.State(), s.Lister(), s.APISlices(), s.Selectors(), func(o *plan.Options) {
		for _, option := range s.Options {
			option(o)
		}
	})
	require.NoError(t, err)
	return a
}

func (s scenario) allocate(t testing.TB) ([]resourceapi.AllocationResult, error) {
	t.Helper()
	return s.allocator(t).Allocate(t.Context(), s.OnNode(), s.APIClaims())
}

// search returns the search that Allocate would run.
func (s scenario) search(t testing.TB) *search.Search {
	t.Helper()
	a := s.allocator(t)
	on, err := a.planner.PlanFor(s.APIClaims()).On(s.OnNode())
	require.NoError(t, err)
	result, err := search.New(t.Context(), on, nil)
	require.NoError(t, err)
	return result
}

// requireDevices requires that the claims get exactly these devices in this order, each written as "request=device". Without
// devices it requires that the claims don't fit.
func (s scenario) requireDevices(t testing.TB, want ...string) {
	t.Helper()
	results, err := s.allocate(t)
	require.NoError(t, err)
	require.Equal(t, want, devicesOf(results))
	require.Equal(t, len(want) == 0, results == nil)
}

func (s scenario) requireError(t testing.TB, message string) {
	t.Helper()
	results, err := s.allocate(t)
	require.ErrorContains(t, err, message)
	require.NotErrorIs(t, err, structured.ErrFailedAllocationOnNode)
	require.Nil(t, results)
}
