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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/conformance/scenario"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// kind is the kind of an outcome.
type kind string

const (
	found  kind = "found"
	none   kind = "none"
	onNode kind = "on-node" // an error that excludes one node
	fatal  kind = "fatal"   // any other error
)

var kinds = []kind{found, none, onNode, fatal}

// An outcome is the result or error of an allocator, with its kind.
type outcome struct {
	kind    kind
	results []resourceapi.AllocationResult
	err     error
}

func (o outcome) String() string {
	return fmt.Sprintf("%s, %d results, error: %v", o.kind, len(o.results), o.err)
}

// equal reports whether two outcomes have the same kind and results. It ignores the texts of errors.
func (o outcome) equal(other outcome) bool {
	return o.kind == other.kind && (reflect.DeepEqual(o.results, other.results) || cmp.Equal(o.results, other.results, byFormat))
}

// byFormat reports quantities as equal if their value and their format are equal.
var byFormat = cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 && a.Format == b.Format })

// requireEqual requires that outcomes are equal. Its failure message shows the difference.
func requireEqual(t require.TestingT, c *scenario.Case, want, got outcome, who string) {
	if want.equal(got) {
		return
	}
	require.Failf(t, "mismatch", "%s\nwant: %v\ngot: %v\nresults (-want +got):\n%s\ncase:\n%s",
		who, want, got, cmp.Diff(want.results, got.results, byFormat), c)
}

// classify returns the outcome for an allocator's results and error. It checks properties that every outcome must have.
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
		if err := anonymize(results); err != nil {
			o.kind, o.err = fatal, err
		}
	}
	return o
}

// anonymize replaces all share IDs by the same ID, because they are random, and makes quantities cache their texts. It returns
// an error if the share IDs were not unique.
func anonymize(results []resourceapi.AllocationResult) error {
	seen := make(map[types.UID]bool)
	for i := range results {
		for j := range results[i].Devices.Results {
			written(results[i].Devices.Results[j].ConsumedCapacity)
			id := &results[i].Devices.Results[j].ShareID
			if *id == nil {
				continue
			}
			if seen[**id] || **id == "" {
				return fmt.Errorf("share ID %q is not unique", **id)
			}
			seen[**id] = true
			*id = &someShare
		}
	}
	return nil
}

// written makes all quantities cache their texts, so that reflect.DeepEqual compares equal quantities as equal.
func written(consumed map[resourceapi.QualifiedName]resource.Quantity) {
	for name, amount := range consumed {
		_ = amount.String()
		consumed[name] = amount
	}
}

var someShare types.UID = "share"

// selectorCaches maps the features that affect selectors to a cache of compiled selectors. The caches are large, because
// otherwise the tests would spend most of their time compiling.
var selectorCaches = func() map[dracel.Features]*dracel.Cache {
	caches := make(map[dracel.Features]*dracel.Cache)
	for _, consumable := range []bool{false, true} {
		for _, lists := range []bool{false, true} {
			features := dracel.Features{EnableConsumableCapacity: consumable, EnableListTypeAttributes: lists}
			caches[features] = dracel.NewCache(10_000, features)
		}
	}
	return caches
}()

func selectorCache(c *scenario.Case) *dracel.Cache {
	return selectorCaches[dracel.Features{
		EnableConsumableCapacity: c.Features.ConsumableCapacity,
		EnableListTypeAttributes: c.Features.ListTypeAttributes,
	}]
}

var environment = sync.OnceValues(func() (*device.Environment, error) {
	return device.NewEnvironment(cel.Config{CacheBytes: 16 << 30})
})

// ours runs the allocator under test, and checks that it does not modify its input.
func ours(c *scenario.Case, options ...allocator.Option) outcome {
	result, _ := oursWithStats(c, options...)
	return result
}

// preparers maps the features that affect selectors to the preparer of the environment.
var preparers sync.Map // dracel.Features -> *allocator.Preparer

// oursPrepared runs our allocator on claims that were prepared before, as a scheduler does. ok is false if preparing the claims
// failed because of a selector.
func oursPrepared(c *scenario.Case) (result outcome, ok bool) {
	environment, err := environment()
	if err != nil {
		return outcome{kind: fatal, err: err}, true
	}
	features := dracel.Features{EnableConsumableCapacity: c.Features.ConsumableCapacity, EnableListTypeAttributes: c.Features.ListTypeAttributes}
	known, found := preparers.Load(features)
	if !found {
		made, err := allocator.NewPreparer(environment, features)
		if err != nil {
			return outcome{kind: fatal, err: err}, true
		}
		known, _ = preparers.LoadOrStore(features, made)
	}
	prepared := allocator.Prepared{}
	for _, claim := range c.Claims {
		one, err := known.(*allocator.Preparer).Prepare(context.Background(), claim, scenario.ClassLister(c.Classes), true)
		if err != nil {
			return outcome{kind: fatal, err: err}, true
		}
		if one.Err() != nil {
			return outcome{}, false
		}
		prepared[claim.UID] = one
	}
	return ours(c, allocator.WithPrepared(prepared)), true
}

func oursWithStats(c *scenario.Case, options ...allocator.Option) (outcome, allocator.Stats) {
	environment, err := environment()
	if err != nil {
		return outcome{kind: fatal, err: err}, allocator.Stats{}
	}
	given := giving(c)
	a, err := allocator.NewAllocator(context.Background(), given.Features, given.state, scenario.ClassLister(given.Classes), given.Slices,
		selectorCache(c), append([]allocator.Option{
			allocator.WithEnvironment(environment),
			// Always analyze the expression. The cases are too small for the default threshold.
		}, options...)...)
	if err != nil {
		return outcome{kind: fatal, err: err}, allocator.Stats{}
	}
	results, err := a.Allocate(context.Background(), given.Node, given.Claims)
	result := classify(c, results, err)
	if what := given.check(); what != "" {
		result = outcome{kind: modified, err: errors.New(what)}
	}
	return result, a.Stats()
}

// variant is an implementation of upstream's allocator. The tests leave out the variant "stable". It neither sorts pools and
// slices nor skips permutations, and no cluster with default features uses it.
type variant string

const (
	incubating   variant = "incubating"   // with default features
	experimental variant = "experimental" // with any alpha feature
)

// variantMutex guards upstream's global variable for the selected variant.
var variantMutex sync.Mutex

// upstream runs a variant of upstream's allocator on the case.
func upstream(v variant, c *scenario.Case) outcome {
	result, _ := upstreamWithSteps(v, c)
	return result
}

// upstreamWithSteps runs a variant of upstream's allocator, and also returns the number of steps of its search.
func upstreamWithSteps(v variant, c *scenario.Case) (outcome, int64) {
	a, err := newUpstream(v, c)
	if err != nil {
		return outcome{kind: fatal, err: err}, 0
	}
	results, err := a.Allocate(context.Background(), c.Node, c.Claims)
	return classify(c, results, err), upstreamSteps(a)
}

// upstreamSteps reads the number of steps from a type of upstream that is not exported.
func upstreamSteps(a structured.Allocator) int64 {
	stats := reflect.ValueOf(a).MethodByName("GetStats").Call(nil)[0]
	return stats.FieldByName("NumAllocateOneInvocations").Int()
}

func newUpstream(v variant, c *scenario.Case) (structured.Allocator, error) {
	variantMutex.Lock()
	defer variantMutex.Unlock()
	structured.EnableAllocators(string(v))
	return structured.NewAllocator(context.Background(), c.Features, c.State(), scenario.ClassLister(c.Classes), c.Slices,
		selectorCache(c))
}

func TestClassify(t *testing.T) {
	onNodeError := fmt.Errorf("invalid pools%w", structured.ErrFailedAllocationOnNode)
	withShares := func(ids ...types.UID) []resourceapi.AllocationResult {
		var result resourceapi.AllocationResult
		for i := range ids {
			result.Devices.Results = append(result.Devices.Results, resourceapi.DeviceRequestAllocationResult{ShareID: &ids[i]})
		}
		return []resourceapi.AllocationResult{result}
	}
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
		"shares":              {results: withShares("a", "b"), want: found},
		"share twice":         {results: withShares("a", "a"), want: fatal},
		"share without ID":    {results: withShares(""), want: fatal},
		"error for the node":  {err: onNodeError, want: onNode},
		"error for the claim": {err: errors.New("no such class"), want: fatal},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, classify(oneClaim, test.results, test.err).kind)
		})
	}
}
