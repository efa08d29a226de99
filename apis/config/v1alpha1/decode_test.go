// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	celsetv1alpha1 "github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/transcript"
)

func argsOf(filter, binding time.Duration) *DynamicResourcesCELArgs {
	return &DynamicResourcesCELArgs{
		TypeMeta:         metav1.TypeMeta{APIVersion: "config.celset.dev/v1alpha1", Kind: "DynamicResourcesCELArgs"},
		FilterTimeout:    &metav1.Duration{Duration: filter},
		BindingTimeout:   &metav1.Duration{Duration: binding},
		CacheSize:        ptr.To(resource.MustParse("256Mi")),
		AttemptTimeout:   &metav1.Duration{Duration: 400 * time.Millisecond},
		Budget:           &Budget{Cost: ptr.To[int64](10_000_000), Steps: ptr.To[int64](200_000)},
		DevicePreemption: devicePreemptionOf(10, 100, 5*time.Minute),
		Allocator:        AllocatorConstrained,
	}
}

func withBudget(args *DynamicResourcesCELArgs, cost, steps int64) *DynamicResourcesCELArgs {
	args.Budget = &Budget{Cost: &cost, Steps: &steps}
	return args
}

func devicePreemptionOf(percentage, absolute int32, timeout time.Duration) *DevicePreemption {
	return &DevicePreemption{MinCandidateNodesPercentage: &percentage, MinCandidateNodesAbsolute: &absolute, HoldTimeout: &metav1.Duration{Duration: timeout}}
}

func backOffOf(initial, longest time.Duration) *BackOff {
	return &BackOff{Initial: &metav1.Duration{Duration: initial}, Max: &metav1.Duration{Duration: longest}}
}

func withCacheSize(args *DynamicResourcesCELArgs, size string) *DynamicResourcesCELArgs {
	args.CacheSize = ptr.To(resource.MustParse(size))
	return args
}

// TestDecodeArgs compares decoded arguments with a transcript. The transcript has the fields that differ from the defaults, and
// errors.
func TestDecodeArgs(t *testing.T) {
	defaults := flat(t, argsOf(10*time.Second, 600*time.Second))
	transcript.Run(t, "testdata/args.txt", func(t *testing.T, raw string) string {
		got, err := DecodeArgs([]byte(raw))
		if err != nil {
			require.Nil(t, got)
			return err.Error()
		}
		var changed []string
		for name, value := range flat(t, got) {
			if defaults[name] != value {
				changed = append(changed, name+": "+value)
			}
		}
		slices.Sort(changed)
		return strings.Join(changed, ", ")
	})
	for _, empty := range []string{"", " \n", "# no arguments\n---\n# none here either\n"} {
		got, err := DecodeArgs([]byte(empty))
		require.NoError(t, err)
		require.Equal(t, defaults, flat(t, got))
	}
}

// flat returns the values of all fields, keyed by the path of the field.
func flat(t *testing.T, args *DynamicResourcesCELArgs) map[string]string {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(args)
	require.NoError(t, err)
	values := map[string]string{}
	var add func(path string, of any)
	add = func(path string, of any) {
		fields, ok := of.(map[string]any)
		if !ok {
			values[path] = fmt.Sprint(of)
		}
		for name, value := range fields {
			add(strings.TrimPrefix(path+"."+name, "."), value)
		}
	}
	add("", content)
	return values
}

// TestDecodeArgsRoundTrip encodes valid arguments as JSON and YAML, and tests that DecodeArgs returns every field.
func TestDecodeArgsRoundTrip(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		want := argsOf(
			time.Duration(rapid.Int64Min(0).Draw(t, "filter")),
			time.Duration(rapid.Int64Min(int64(time.Second)).Draw(t, "binding")),
		)
		want = withCacheSize(want, fmt.Sprintf("%dKi", rapid.Int64Range(1<<10, 1<<30).Draw(t, "cache")))
		want = withBudget(want, rapid.Int64Min(1).Draw(t, "cost"), rapid.Int64Min(1).Draw(t, "steps"))
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

// FuzzDecodeArgs checks that DecodeArgs never panics, and that accepted arguments are valid and have all defaults.
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
