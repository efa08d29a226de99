// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	celsetv1alpha1 "github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
)

func argsOf(filter, binding time.Duration) *DynamicResourcesCELArgs {
	return &DynamicResourcesCELArgs{
		TypeMeta:         metav1.TypeMeta{APIVersion: "config.celset.dev/v1alpha1", Kind: "DynamicResourcesCELArgs"},
		FilterTimeout:    &metav1.Duration{Duration: filter},
		BindingTimeout:   &metav1.Duration{Duration: binding},
		CacheSize:        ptr.To(resource.MustParse("256Mi")),
		AttemptTimeout:   &metav1.Duration{Duration: 400 * time.Millisecond},
		Budget:           budgetOf(5_000_000, 100_000),
		PreferenceBudget: preferenceBudgetOf(1_000_000, 2_000),
		DevicePreemption: devicePreemptionOf(10, 100, 5*time.Minute),
		Allocator:        AllocatorConstrained,
	}
}

func withBudget(args *DynamicResourcesCELArgs, cost, steps int64) *DynamicResourcesCELArgs {
	args.Budget = budgetOf(cost, steps)
	return args
}

// budgetOf has the defaults for an attempt, or more if a node may have more.
func budgetOf(cost, steps int64) *Budget {
	return &Budget{
		Cost: &cost, Steps: &steps,
		AttemptCost: ptr.To(max(10_000_000, cost)), AttemptSteps: ptr.To(max(200_000, steps)),
	}
}

// preferenceBudgetOf is budgetOf for preferences.
func preferenceBudgetOf(cost, steps int64) *PreferenceBudget {
	return &PreferenceBudget{
		Cost: &cost, Steps: &steps,
		AttemptCost: ptr.To(max(2_000_000, cost)), AttemptSteps: ptr.To(max(20_000, steps)),
	}
}

func devicePreemptionOf(percentage, absolute int32, timeout time.Duration) *DevicePreemption {
	return &DevicePreemption{MinCandidateNodesPercentage: &percentage, MinCandidateNodesAbsolute: &absolute, HoldTimeout: &metav1.Duration{Duration: timeout}}
}

func backOffOf(initial, longest time.Duration) *BackOff {
	return &BackOff{Initial: &metav1.Duration{Duration: initial}, Max: &metav1.Duration{Duration: longest}}
}

func with(edit func(*DynamicResourcesCELArgs)) *DynamicResourcesCELArgs {
	args := argsOf(10*time.Second, 600*time.Second)
	edit(args)
	return args
}

func withAllocator(args *DynamicResourcesCELArgs, mode AllocatorMode) *DynamicResourcesCELArgs {
	args.Allocator = mode
	return args
}

func withCacheSize(args *DynamicResourcesCELArgs, size string) *DynamicResourcesCELArgs {
	args.CacheSize = ptr.To(resource.MustParse(size))
	return args
}

func TestDecodeArgs(t *testing.T) {
	defaults := argsOf(10*time.Second, 600*time.Second)
	for name, tc := range map[string]struct {
		raw  string
		want *DynamicResourcesCELArgs
	}{
		"empty":             {raw: "", want: defaults},
		"white space":       {raw: " \n", want: defaults},
		"null":              {raw: "null", want: defaults},
		"empty object":      {raw: "{}", want: defaults},
		"only comments":     {raw: "# no arguments\n---\n# none here either\n", want: defaults},
		"null fields":       {raw: `{"filterTimeout":null,"bindingTimeout":null}`, want: defaults},
		"JSON":              {raw: `{"filterTimeout":"30s","bindingTimeout":"1s"}`, want: argsOf(30*time.Second, time.Second)},
		"YAML":              {raw: "filterTimeout: 1m30s\nbindingTimeout: 2h\n", want: argsOf(90*time.Second, 2*time.Hour)},
		"YAML after marker": {raw: "---\nfilterTimeout: 1s\n---\n", want: argsOf(time.Second, 600*time.Second)},
		"no filter timeout": {raw: "filterTimeout: 0s", want: argsOf(0, 600*time.Second)},
		"allocator":         {raw: "allocator: All", want: withAllocator(argsOf(10*time.Second, 600*time.Second), AllocatorAll)},
		"upstream's":        {raw: "allocator: Upstream", want: withAllocator(argsOf(10*time.Second, 600*time.Second), AllocatorUpstream)},
		"budget":            {raw: "budget: {cost: 7, steps: 8}", want: withBudget(argsOf(10*time.Second, 600*time.Second), 7, 8)},
		"cache size":        {raw: "cacheSize: 1Gi", want: withCacheSize(argsOf(10*time.Second, 600*time.Second), "1Gi")},
		"smallest cache":    {raw: `{"cacheSize":"1048576"}`, want: withCacheSize(argsOf(10*time.Second, 600*time.Second), "1048576")},
		"cost only":         {raw: `{"budget":{"cost":9223372036854775807}}`, want: withBudget(argsOf(10*time.Second, 600*time.Second), math.MaxInt64, 100_000)},
		"steps only":        {raw: "budget:\n  steps: 1", want: withBudget(argsOf(10*time.Second, 600*time.Second), 5_000_000, 1)},
		"power of ten":      {raw: "budget: {cost: 1e9}", want: withBudget(argsOf(10*time.Second, 600*time.Second), 1_000_000_000, 100_000)},
		"attempt": {raw: "budget: {attemptCost: 3, attemptSteps: 4}\nattemptTimeout: 0s", want: with(func(args *DynamicResourcesCELArgs) {
			args.AttemptTimeout = &metav1.Duration{}
			args.Budget.AttemptCost, args.Budget.AttemptSteps = ptr.To[int64](3), ptr.To[int64](4)
		})},
		"back-off": {raw: "backOff: {initial: 10m}", want: with(func(args *DynamicResourcesCELArgs) {
			args.BackOff = backOffOf(10*time.Minute, 10*time.Minute)
		})},
		"longest back-off": {raw: `{"backOff":{"max":"1m","initial":null}}`, want: with(func(args *DynamicResourcesCELArgs) {
			args.BackOff = backOffOf(time.Second, time.Minute)
		})},
		"back-off of defaults": {raw: "backOff: {}", want: with(func(args *DynamicResourcesCELArgs) {
			args.BackOff = backOffOf(time.Second, 5*time.Minute)
		})},
		"share of defaults": {raw: "share: {}", want: with(func(args *DynamicResourcesCELArgs) {
			args.Share = &Share{Percent: ptr.To[int32](20), Burst: &metav1.Duration{Duration: 150 * time.Millisecond}}
		})},
		"share": {raw: "share: {percent: 100, burst: 1ms}", want: with(func(args *DynamicResourcesCELArgs) {
			args.Share = &Share{Percent: ptr.To[int32](100), Burst: &metav1.Duration{Duration: time.Millisecond}}
		})},
		"preference budget": {raw: "preferenceBudget: {cost: 7000000, steps: 8}", want: with(func(args *DynamicResourcesCELArgs) {
			args.PreferenceBudget = preferenceBudgetOf(7_000_000, 8)
		})},
		"preference budget of an attempt": {raw: `{"preferenceBudget":{"attemptCost":1,"attemptSteps":2}}`, want: with(func(args *DynamicResourcesCELArgs) {
			args.PreferenceBudget.AttemptCost, args.PreferenceBudget.AttemptSteps = ptr.To[int64](1), ptr.To[int64](2)
		})},
		"preemption": {raw: "devicePreemption: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 7, holdTimeout: 90s}", want: with(func(args *DynamicResourcesCELArgs) {
			args.DevicePreemption = devicePreemptionOf(0, 7, 90*time.Second)
		})},
		"preemption of defaults": {raw: "devicePreemption: {}", want: defaults},
		"no preference budget":   {raw: "preferenceBudget: null", want: defaults},
		"default preference":     {raw: "defaultPreference: KeepWhole", want: with(func(args *DynamicResourcesCELArgs) { args.DefaultPreference = "KeepWhole" })},
		"default preference and allocator": {raw: "{defaultPreference: KeepWhole, allocator: All}", want: with(func(args *DynamicResourcesCELArgs) {
			args.DefaultPreference, args.Allocator = "KeepWhole", AllocatorAll
		})},
		"fragmentation": {raw: "fragmentationInterval: 1s", want: with(func(args *DynamicResourcesCELArgs) {
			args.FragmentationInterval = &metav1.Duration{Duration: time.Second}
		})},
		"no fragmentation": {raw: "fragmentationInterval: 0s", want: with(func(args *DynamicResourcesCELArgs) {
			args.FragmentationInterval = &metav1.Duration{}
		})},
		"no default preference": {raw: `{"defaultPreference":""}`, want: defaults},
		"empty budget":          {raw: "budget: {}", want: defaults},
		"no budget":             {raw: "budget: null", want: defaults},
		"typed":                 {raw: `{"apiVersion":"config.celset.dev/v1alpha1","kind":"DynamicResourcesCELArgs"}`, want: defaults},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeArgs([]byte(tc.raw))
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
	got, err := DecodeArgs(nil)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(defaults, got))
}

func TestDecodeArgsErrors(t *testing.T) {
	const hint = " (field names are case-sensitive, each may be set once)"
	const duration = `: must be a duration with a unit, such as "10s" or "1m30s"`
	for name, tc := range map[string]struct{ raw, want string }{
		"default preference":               {raw: "defaultPreference: keepWhole", want: `args.defaultPreference: Unsupported value: "keepWhole": supported values: "KeepWhole"`},
		"default preference of upstream's": {raw: "{defaultPreference: KeepWhole, allocator: Upstream}", want: "args.defaultPreference: Forbidden: the allocator Upstream knows no preferences: remove this, or choose another allocator"},
		"preference budget":                {raw: "preferenceBudget: {cost: 0, steps: -1, attemptCost: 0}", want: "[args.preferenceBudget.cost: Invalid value: 0: must be at least 1, args.preferenceBudget.steps: Invalid value: -1: must be at least 1, args.preferenceBudget.attemptCost: Invalid value: 0: must be at least 1]"},
		"field of the preference budget":   {raw: "preferenceBudget: {Cost: 1}", want: "args.preferenceBudget.Cost: Invalid value: unknown field" + hint},
		"allocator":                        {raw: "allocator: all", want: `args.allocator: Unsupported value: "all": supported values: "Constrained", "All", "Upstream"`},
		"unknown field":                    {raw: "filterTimeOut: 1s", want: "args.filterTimeOut: Invalid value: unknown field" + hint},
		"case of field":                    {raw: `{"FilterTimeout":"1s"}`, want: "args.FilterTimeout: Invalid value: unknown field" + hint},
		"duplicate field":                  {raw: `{"filterTimeout":"1s","filterTimeout":"2s"}`, want: "args.filterTimeout: Invalid value: duplicate field" + hint},
		"duplicate field, YAML": {
			raw:  "filterTimeout: 1s\nfilterTimeout: 2s\n",
			want: "args: Invalid value: must be JSON or YAML: yaml: unmarshal errors:\n  line 2: key \"filterTimeout\" already set in map",
		},
		"number":        {raw: "filterTimeout: 10", want: "args.filterTimeout: Invalid value: must be a string, but is: number"},
		"no unit":       {raw: `filterTimeout: "10"`, want: `args.filterTimeout: Invalid value: "10"` + duration},
		"two malformed": {raw: `{"filterTimeout":"","bindingTimeout":"ten"}`, want: `[args.filterTimeout: Invalid value: ""` + duration + `, args.bindingTimeout: Invalid value: "ten"` + duration + `]`},
		"negative":      {raw: "filterTimeout: -1s", want: `args.filterTimeout: Invalid value: "-1s": must be zero, for no limit, or positive`},
		"budget of nothing": {
			raw:  "budget: {cost: 0, steps: -1}",
			want: "[args.budget.cost: Invalid value: 0: must be at least 1, args.budget.steps: Invalid value: -1: must be at least 1]",
		},
		"cache as number":    {raw: "cacheSize: 268435456", want: "args.cacheSize: Invalid value: must be a string, but is: number"},
		"malformed cache":    {raw: "cacheSize: 1 Gi", want: `args.cacheSize: Invalid value: "1 Gi": must be a quantity, such as "256Mi" or "1Gi"`},
		"cache too small":    {raw: "cacheSize: 1023Ki", want: "args.cacheSize: Invalid value: 1047552: must be at least 1048576 bytes, which is 1Mi"},
		"fraction of a byte": {raw: "cacheSize: 1048576500m", want: "args.cacheSize: Invalid value: must be a whole number of bytes, at most 1Ti"},
		"cache too large":    {raw: `cacheSize: "1e2000000000"`, want: "args.cacheSize: Invalid value: must be a whole number of bytes, at most 1Ti"},
		"no attempt":         {raw: "attemptTimeout: -1ns", want: `args.attemptTimeout: Invalid value: "-1ns": must be zero, for no limit, or positive`},
		"fragmentation":      {raw: "fragmentationInterval: -1ns", want: `args.fragmentationInterval: Invalid value: "-1ns": must be zero, for never, or at least 1s`},
		"too often":          {raw: "fragmentationInterval: 999ms", want: `args.fragmentationInterval: Invalid value: "999ms": must be zero, for never, or at least 1s`},
		"minutes":            {raw: "fragmentationInterval: 5", want: "args.fragmentationInterval: Invalid value: must be a string, but is: number"},
		"attempt of none":    {raw: "budget: {attemptCost: 0}", want: "args.budget.attemptCost: Invalid value: 0: must be at least 1"},
		"back-off": {
			raw:  "backOff: {initial: 10s, max: 9s}",
			want: `args.backOff.max: Invalid value: "9s": must be at least 10s`,
		},
		"short back-off": {
			raw:  "backOff: {initial: 0s, max: 0s}",
			want: `[args.backOff.initial: Invalid value: "0s": must be at least 1s, args.backOff.max: Invalid value: "0s": must be at least 1s]`,
		},
		"malformed back-off": {raw: "backOff: {max: long}", want: `args.backOff.max: Invalid value: "long"` + duration},
		"no share":           {raw: "share: {percent: 0, burst: 0s}", want: `[args.share.percent: Invalid value: 0: must be from 1 to 100, args.share.burst: Invalid value: "0s": must be at least 1ms]`},
		"large share":        {raw: "share: {percent: 101}", want: "args.share.percent: Invalid value: 101: must be from 1 to 100"},
		"unknown limit":      {raw: "budget: {evaluations: 1}", want: "args.budget.evaluations: Invalid value: unknown field" + hint},
		"duplicate limit":    {raw: `{"budget":{"cost":1,"cost":2}}`, want: "args.budget.cost: Invalid value: duplicate field" + hint},
		"limit as text":      {raw: `budget: {steps: "1"}`, want: "args.budget.steps: Invalid value: must be an integer, but is: string"},
		"fraction":           {raw: "budget: {cost: 1.5}", want: "args.budget.cost: Invalid value: must be an integer, but is: number 1.5"},
		"limit too large":    {raw: `{"budget":{"cost":9223372036854775808}}`, want: "args.budget.cost: Invalid value: must be an integer, but is: number 9223372036854775808"},
		"budget as a number": {raw: "budget: 100000000", want: "args.budget: Invalid value: must be an object, but is: number"},
		"too short":          {raw: "bindingTimeout: 999ms", want: `args.bindingTimeout: Invalid value: "999ms": must be at least 1s`},
		"other version": {
			raw:  "apiVersion: kubescheduler.config.k8s.io/v1\nkind: DynamicResourcesArgs\nsomething: else\n",
			want: `[args.apiVersion: Unsupported value: "kubescheduler.config.k8s.io/v1": supported values: "config.celset.dev/v1alpha1", args.kind: Unsupported value: "DynamicResourcesArgs": supported values: "DynamicResourcesCELArgs"]`,
		},
		"wrong type of kind": {raw: "kind: [a]", want: "args.kind: Invalid value: must be a string, but is: array"},
		"not an object":      {raw: "10s", want: "args: Invalid value: must be an object, but is: string"},
		"two documents":      {raw: "filterTimeout: 1s\n---\nbindingTimeout: 1s\n", want: "args: Invalid value: must be one document, but more follows it"},
		"after end marker":   {raw: "filterTimeout: 1s\n...\nbindingTimeout: 1s\n", want: "args: Invalid value: must be JSON or YAML: yaml: line 2: did not find expected <document start>"},
		"trailing object":    {raw: `{"filterTimeout":"1s"} {"a":1}`, want: "args: Invalid value: must be JSON or YAML: yaml: did not find expected <document start>"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := DecodeArgs([]byte(tc.raw))
			require.EqualError(t, err, "invalid DynamicResourcesCELArgs: "+tc.want)
			require.Nil(t, got)
		})
	}
	for name, raw := range map[string]string{
		"trailing bracket": `{"filterTimeout":"1s"}}`,
		"neither":          "{filterTimeout: [",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeArgs([]byte(raw))
			require.ErrorContains(t, err, "invalid DynamicResourcesCELArgs: args: Invalid value: must be JSON or YAML: ")
		})
	}
}

// TestDecodeArgsRoundTrip states that valid arguments are read back from JSON
// and YAML, and with that that DecodeArgs knows each field of the type.
func TestDecodeArgsRoundTrip(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		want := argsOf(
			time.Duration(rapid.Int64Min(0).Draw(t, "filter")),
			time.Duration(rapid.Int64Min(int64(time.Second)).Draw(t, "binding")),
		)
		want = withCacheSize(want, fmt.Sprintf("%dKi", rapid.Int64Range(1<<10, 1<<30).Draw(t, "cache")))
		want = withBudget(want, rapid.Int64Min(1).Draw(t, "cost"), rapid.Int64Min(1).Draw(t, "steps"))
		want.PreferenceBudget = preferenceBudgetOf(rapid.Int64Min(1).Draw(t, "cost of preferences"), rapid.Int64Min(1).Draw(t, "steps of preferences"))
		want.DefaultPreference = rapid.SampledFrom([]celsetv1alpha1.PreferencePolicy{"", celsetv1alpha1.PolicyKeepWhole}).Draw(t, "policy")
		want.DevicePreemption = devicePreemptionOf(rapid.Int32Range(1, 100).Draw(t, "percentage"), rapid.Int32Min(0).Draw(t, "absolute"),
			time.Duration(rapid.Int64Min(int64(time.Second)).Draw(t, "hold")))
		want.AttemptTimeout.Duration = time.Duration(rapid.Int64Min(0).Draw(t, "attempt"))
		want.BackOff = backOffOf(
			time.Duration(rapid.Int64Range(int64(time.Second), int64(time.Hour)).Draw(t, "initial")),
			time.Duration(rapid.Int64Min(int64(time.Hour)).Draw(t, "max")),
		)
		want.Share = &Share{
			Percent: ptr.To(rapid.Int32Range(1, 100).Draw(t, "percent")),
			Burst:   &metav1.Duration{Duration: time.Duration(rapid.Int64Min(int64(time.Millisecond)).Draw(t, "burst"))},
		}
		asJSON, err := json.Marshal(want)
		require.NoError(t, err)
		asYAML, err := yaml.Marshal(want)
		require.NoError(t, err)
		for _, raw := range [][]byte{asJSON, asYAML} {
			got, err := DecodeArgs(raw)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(want, got))
		}
	})
}

// FuzzDecodeArgs checks that DecodeArgs never panics and that all that it
// accepts is valid and complete.
func FuzzDecodeArgs(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "null", "---\n---", "filterTimeout: 1s", `{"bindingTimeout":"1s"}`, "a: &a [*a]", "? {}", "kind: 0x1", "\xff", "<<: {}", "budget: {cost: 1}", "cacheSize: 1Gi", "share: {percent: 5}", "backOff: {max: 2s}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		args, err := DecodeArgs(raw)
		if err != nil {
			require.Nil(t, args)
			return
		}
		require.Empty(t, Validate(args, nil))
		require.NotNil(t, args.FilterTimeout)
		require.NotNil(t, args.BindingTimeout)
		require.NotNil(t, args.Budget.Cost)
		require.NotNil(t, args.Budget.Steps)
		require.NotNil(t, args.CacheSize)
		require.NotNil(t, args.Budget.AttemptCost)
		require.NotNil(t, args.Budget.AttemptSteps)
		require.NotNil(t, args.AttemptTimeout)
		if args.BackOff != nil {
			require.NotNil(t, args.BackOff.Initial)
			require.NotNil(t, args.BackOff.Max)
		}
		if args.Share != nil {
			require.NotNil(t, args.Share.Percent)
			require.NotNil(t, args.Share.Burst)
		}
	})
}
