// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/test/conformance/scenario"
)

// kind is how an allocation ended.
type kind string

const (
	found  kind = "found"
	none   kind = "none"
	onNode kind = "on-node" // an error that concerns one node
	fatal  kind = "fatal"   // any other error
)

var kinds = []kind{found, none, onNode, fatal}

// outcome is what an allocator returned.
type outcome struct {
	kind    kind
	results []resourceapi.AllocationResult
	err     error
}

func (o outcome) String() string {
	return fmt.Sprintf("%s, %d results, error: %v", o.kind, len(o.results), o.err)
}

// equal leaves out the text of errors: it is written for people.
func (o outcome) equal(other outcome) bool {
	return o.kind == other.kind && reflect.DeepEqual(o.results, other.results)
}

// requireEqual compares with a difference that can be read.
func requireEqual(t require.TestingT, c *scenario.Case, want, got outcome, who string) {
	if want.equal(got) {
		return
	}
	require.Failf(t, "mismatch", "%s\nwant: %v\ngot: %v\nresults (-want +got):\n%s\ncase:\n%s",
		who, want, got, cmp.Diff(want.results, got.results), c)
}

// classify also checks what holds for every allocator.
func classify(c *scenario.Case, results []resourceapi.AllocationResult, err error) outcome {
	o := outcome{results: results, err: err}
	switch {
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		o.kind = onNode
	case err != nil:
		o.kind = fatal
	case results == nil:
		o.kind = none
	case len(results) != len(c.Claims):
		o.kind = fatal
		o.err = fmt.Errorf("%d results for %d claims", len(results), len(c.Claims))
	default:
		o.kind = found
	}
	return o
}

// selectorCaches hold compiled selectors, by whether ConsumableCapacity is on.
// They are large, because most of the time would be spent compiling.
var selectorCaches = map[bool]*dracel.Cache{
	false: dracel.NewCache(10_000, dracel.Features{}),
	true:  dracel.NewCache(10_000, dracel.Features{EnableConsumableCapacity: true}),
}

var environment = sync.OnceValues(func() (*device.Environment, error) {
	return device.NewEnvironment(cel.Config{CacheSize: 100_000})
})

// ours runs the allocator under test.
func ours(c *scenario.Case, options ...allocator.Option) outcome {
	environment, err := environment()
	if err != nil {
		return outcome{kind: fatal, err: err}
	}
	a, err := allocator.NewAllocator(context.Background(), c.Features, c.State(), scenario.ClassLister(c.Classes), c.Slices,
		selectorCaches[c.Features.ConsumableCapacity], append(options, allocator.WithEnvironment(environment))...)
	if err != nil {
		return outcome{kind: fatal, err: err}
	}
	results, err := a.Allocate(context.Background(), c.Node, c.Claims)
	return classify(c, results, err)
}

// variant is one of the implementations that upstream has of its allocator. The
// one called "stable" is left out: it neither orders pools and slices nor leaves
// out permutations, and no cluster with default features uses it.
type variant string

const (
	incubating   variant = "incubating"   // with default features
	experimental variant = "experimental" // with any alpha feature
)

// variantMutex guards upstream's selection, which is global.
var variantMutex sync.Mutex

// upstream runs one of upstream's implementations.
func upstream(v variant, c *scenario.Case) outcome {
	a, err := newUpstream(v, c)
	if err != nil {
		return outcome{kind: fatal, err: err}
	}
	results, err := a.Allocate(context.Background(), c.Node, c.Claims)
	return classify(c, results, err)
}

func newUpstream(v variant, c *scenario.Case) (structured.Allocator, error) {
	variantMutex.Lock()
	defer variantMutex.Unlock()
	structured.EnableAllocators(string(v))
	return structured.NewAllocator(context.Background(), c.Features, c.State(), scenario.ClassLister(c.Classes), c.Slices,
		selectorCaches[c.Features.ConsumableCapacity])
}

func TestClassify(t *testing.T) {
	onNodeError := fmt.Errorf("invalid pools%w", structured.ErrFailedAllocationOnNode)
	oneClaim := &scenario.Case{Claims: []*resourceapi.ResourceClaim{{}}}
	for name, test := range map[string]struct {
		results []resourceapi.AllocationResult
		err     error
		want    kind
	}{
		"nothing":             {want: none},
		"a result":            {results: make([]resourceapi.AllocationResult, 1), want: found},
		"too many results":    {results: make([]resourceapi.AllocationResult, 2), want: fatal},
		"no result, not nil":  {results: []resourceapi.AllocationResult{}, want: fatal},
		"error for the node":  {err: onNodeError, want: onNode},
		"error for the claim": {err: errors.New("no such class"), want: fatal},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, classify(oneClaim, test.results, test.err).kind)
		})
	}
}
