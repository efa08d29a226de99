// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/internal/testing/cases"
)

// scheduler returns the allocator as the plugin configures it for a scheduling attempt.
func scheduler(t require.TestingT, environment *device.Environment, classes fakeClasses) *allocator.Allocator {
	features := structured.Features{PrioritizedList: true, AdminAccess: true}
	a, err := allocator.NewAllocator(context.Background(), features, structured.AllocatedState{}, classes, nil,
		dracel.NewCache(10, dracel.Features{}), allocator.WithEnvironment(environment))
	require.NoError(t, err)
	return a
}

// newEnvironment returns the environment of a scheduler, which must not share a cache with the checker.
func newEnvironment(t testing.TB) *device.Environment {
	t.Helper()
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	return environment
}

// schedulersVerdict returns the plugin's error for a claim, if the plugin rejects the claim before it tries a node. The plugin
// ignores the definitions in a claim without constraints. For such a claim schedulersVerdict returns the error of resolving the
// definitions.
func schedulersVerdict(t require.TestingT, environment *device.Environment, w world) error {
	ofClass := func(has func(*resourceapi.DeviceClass) bool) func(string) bool {
		return func(name string) bool {
			class, err := w.classes.Get(name)
			return err == nil && has(class)
		}
	}
	if !v1alpha1.HasConstraints(w.claim, ofClass(v1alpha1.HasDefaults)) && !v1alpha1.HasPreference(w.claim, ofClass(v1alpha1.HasPreferences)) {
		_, err := v1alpha1.Resolve(w.claim, w.classes)
		return err
	}
	return scheduler(t, environment, w.classes).CheckConstraints([]*resourceapi.ResourceClaim{w.claim})
}

// TestSameVerdictAsTheScheduler checks that the webhook and the scheduler reject the same claims. It draws at least 200 claims,
// most of them malformed.
func TestSameVerdictAsTheScheduler(t *testing.T) {
	checker, environment := newChecker(t, Options{}), newEnvironment(t)
	refused, undecided, accepted, constrained, preferring := 0, 0, 0, 0, 0
	check := func(t *rapid.T) {
		for range 10 {
			w := worldGen().Draw(t, "world")
			before := w.claim.DeepCopy()
			got := judged(checker.Claim(t.Context(), w.claim, w.classes))
			require.Equal(t, before, w.claim, "it is not written to")
			err := schedulersVerdict(t, environment, w)
			// Ignore errors about too many devices. The scheduler finds them only later, on a node.
			isCount := func(e *field.Error) bool { return strings.Contains(e.Detail, "a claim has at most 32") }
			counted := slices.ContainsFunc(got.Errors, isCount)
			got.Errors = slices.DeleteFunc(got.Errors, isCount)
			require.Equal(t, err != nil, len(got.Errors) > 0 || got.Undecided, "scheduler: %v\nwebhook: %v, %v", err, got.Errors, got.Warnings)
			requireSameWords(t, err, got)
			switch {
			case len(got.Errors) > 0:
				refused++
			case got.Undecided:
				undecided++
			default:
				accepted++
				requireSchedulable(t, environment, w)
				if v1alpha1.HasReference(w.claim) {
					constrained++
				}
				if v1alpha1.HasPreference(w.claim, func(string) bool { return false }) {
					preferring++
				}
			}
			for _, text := range got.Warnings {
				require.NotContains(t, text, "\n")
			}
			template := judged(checker.Template(t.Context(), templateOf(w.claim), w.classes))
			require.Equal(t, counted, slices.ContainsFunc(template.Errors, isCount))
			require.Len(t, slices.DeleteFunc(template.Errors, isCount), len(got.Errors))
			require.Len(t, template.Warnings, len(got.Warnings))
			require.Equal(t, got.Undecided, template.Undecided)
		}
	}
	cases.Until(t, cases.Of(20, 100), func() bool { return min(refused, undecided, accepted, constrained, preferring) > 0 }, check)
	t.Logf("%d refused, %d undecided, %d accepted, %d of them with constraints and %d with preferences", refused, undecided, accepted, constrained, preferring)
}

// requireSameWords requires that the webhook's verdict has every message of the scheduler's error.
func requireSameWords(t *rapid.T, err error, got Verdict) {
	said := strings.Join(append(texts(got.Errors), got.Warnings...), "\n")
	if found, ok := errors.AsType[*v1alpha1.Error](err); ok {
		for _, one := range found.Errors {
			require.Contains(t, said, oneLine(one.Error())[:20])
			if one.Origin != v1alpha1.OriginUnavailableClass {
				require.Contains(t, texts(got.Errors), one.Error())
			}
		}
		return
	}
	if failure, ok := errors.AsType[*cel.Error](err); ok {
		require.True(t, slices.ContainsFunc(texts(got.Errors), func(text string) bool {
			return strings.Contains(text, failure.Error()) || len(failure.Error()) > maxText/2
		}), "%v is not in %v", failure, got.Errors)
	}
}

// requireSchedulable requires that Allocate accepts the constraints of an admitted claim.
func requireSchedulable(t *rapid.T, environment *device.Environment, w world) {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	_, err := scheduler(t, environment, w.classes).Allocate(context.Background(), node, []*resourceapi.ResourceClaim{w.claim})
	_, isOurs := errors.AsType[*v1alpha1.Error](err)
	_, isCompilation := errors.AsType[*cel.Error](err)
	require.False(t, isOurs || isCompilation, "%v", err)
}

// TestSameVerdictOnClasses tests that a class is rejected if and only if some claim that uses it would be invalid.
func TestSameVerdictOnClasses(t *testing.T) {
	checker, environment := newChecker(t, Options{}), newEnvironment(t)
	refused, accepted := 0, 0
	cases.Check(t, func(t *rapid.T) {
		class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "mla"}}
		for _, configuration := range rapid.SliceOfN(configurationGen(), 0, 3).Draw(t, "config") {
			class.Spec.Config = append(class.Spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: configuration})
		}
		definitions, err := v1alpha1.ClassDefinitions(class)
		for _, definition := range definitions {
			err = errors.Join(err, schedulersVerdict(t, environment, world{using(class.Name, definition.Name), fakeClasses{"mla": class}}))
		}
		if v1alpha1.HasPreferences(class) {
			plain := using(class.Name, "")
			plain.Spec.Devices.Constraints = nil
			err = errors.Join(err, schedulersVerdict(t, environment, world{plain, fakeClasses{"mla": class}}))
		}
		got := judged(checker.Class(t.Context(), class))
		require.Equal(t, err != nil, len(got.Errors) > 0, "scheduler: %v\nwebhook: %v", err, got.Errors)
		require.Empty(t, Ratcheted(got, judged(checker.Class(t.Context(), class.DeepCopy()))).Errors, "nothing got worse")
		if err != nil {
			refused++
		} else {
			accepted++
		}
	})
	require.Positive(t, min(refused, accepted))
}

// using returns a claim that refers to the named constraint of a class.
func using(class, name string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Requests:    []resourceapi.DeviceRequest{{Name: "r", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}}},
		Constraints: []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(resourceapi.FullyQualifiedName("celset.dev/" + name))}},
	}}}
}

// TestMemoryIsFlat tests that the checker retains only a bounded number of compiled expressions.
func TestMemoryIsFlat(t *testing.T) {
	// bytes, the size of the cache, is so small that each round fills the cache.
	const remembered, objects, bytes = 8, 250, 2 << 20
	environment, err := device.NewEnvironment(cel.Config{CacheBytes: bytes})
	require.NoError(t, err)
	checker, generator := newChecker(t, Options{Environment: environment}), worldGen()
	judge := func(round int) {
		for i := range objects {
			w := generator.Example(objects*round + i)
			judged(checker.Claim(t.Context(), w.claim, w.classes))
		}
		for i := range remembered {
			text := fmt.Sprintf("%d != %d && %s true", round, -1-i, strings.Repeat("devices.size() > 0 && ", 100))
			require.Empty(t, judged(checker.Claim(t.Context(), claimOf(t, asking(4, defined("a", text))), fakeClasses{})).Errors)
		}
	}
	judge(0)
	first := heap()
	for round := range 3 {
		judge(round + 1)
		require.Less(t, heap(), first+first/4+(4<<20), "after round %d; it was %d", round+1, first)
	}
}

// heap returns the number of bytes of the heap in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
