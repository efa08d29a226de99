// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/plugintest"
)

var oneRow = map[string]int64{"mla-1": 10}

// TestOffWithoutTheKind checks that nothing is computed while the API server does not serve the kind.
func TestOffWithoutTheKind(t *testing.T) {
	ctx, b := newBench(t, false, nil, plugintest.Slice(1))
	require.False(t, b.pass(ctx))
	require.Nil(t, b.current.Load())
	all, err := b.handle.Manager.ResourceSlices().ListWithDeviceTaintRules()
	require.NoError(t, err)
	shown, err := b.Manager(b.handle.Manager).ResourceSlices().ListWithDeviceTaintRules()
	require.NoError(t, err)
	require.Same(t, all[0], shown[0])
	require.NotContains(t, plugintest.MetricValues(t, b.registry), "device_attributes_duration_seconds")
}

// TestFirstCyclesSeeIncompletePools checks that the scheduler never sees a device without the attributes that it is going to get.
func TestFirstCyclesSeeIncompletePools(t *testing.T) {
	ctx, b := newBench(t, true, []*v1alpha1.DeviceAttributes{plugintest.AttributesTable("a", oneRow)}, plugintest.Slice(1, 2))
	require.Equal(t, map[string]string{"incomplete pool": plugintest.NodeName}, b.shown(t))
	require.True(t, b.pass(ctx))
	require.Equal(t, map[string]string{"mla-1": "10", "mla-2": "-"}, b.shown(t))
	now := time.Now()
	require.Equal(t, recheck, b.wakers.wake(now))
	require.Equal(t, []string{plugintest.Driver}, <-b.woken)
	require.False(t, b.pass(ctx), "nothing has changed")
	require.Equal(t, recheck, b.wakers.wake(now.Add(time.Hour)))
	require.Empty(t, b.woken)
	require.Subset(t, plugintest.MetricValues(t, b.registry), map[string]float64{
		"device_attributes": 1, "device_attributes_objects accepted": 1, "device_attributes_duration_seconds": 2,
	})
}

// TestRetriesHaveAMinimumDistance checks that changes in quick succession cause one further retry.
func TestRetriesHaveAMinimumDistance(t *testing.T) {
	var calls [][]string
	w := &wakers{}
	w.add(func(drivers sets.Set[string]) { calls = append(calls, sets.List(drivers)) })
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.note(sets.New("a"))
	require.Equal(t, recheck, w.wake(now))
	for _, driver := range []string{"b", "c", "b"} {
		w.note(sets.New(driver))
		require.Equal(t, wakeRest-time.Millisecond, w.wake(now.Add(time.Millisecond)))
	}
	require.Equal(t, recheck, w.wake(now.Add(wakeRest)))
	require.Equal(t, [][]string{{"a"}, {"b", "c"}}, calls)
}

// TestDeletedObjectDoesNotComeBack checks that an object that was deleted while its status was written does not come back.
func TestDeletedObjectDoesNotComeBack(t *testing.T) {
	object := plugintest.AttributesTable("a", oneRow)
	ctx, b := newBench(t, true, []*v1alpha1.DeviceAttributes{object}, plugintest.Slice(1))
	read := plugintest.Unstructured(t, object)
	read.SetResourceVersion("7")
	b.follower.refresh(ctx, read)
	require.Equal(t, "7", b.follower.list()[0].ResourceVersion)
	older := plugintest.Unstructured(t, object)
	older.SetGeneration(2)
	b.follower.refresh(ctx, older)
	require.Equal(t, int64(1), b.follower.list()[0].Generation)
	b.follower.delete(read)
	b.follower.refresh(ctx, read)
	require.True(t, b.follower.isEmpty())
}

// TestNothingIsKeptWithoutObjects checks that the ResourceSlices with attributes are freed after the last object was deleted.
func TestNothingIsKeptWithoutObjects(t *testing.T) {
	object := plugintest.AttributesTable("a", oneRow)
	ctx, b := newBench(t, true, []*v1alpha1.DeviceAttributes{object}, plugintest.Slice(1))
	b.pass(ctx)
	var kept []weak.Pointer[resourceapi.ResourceSlice]
	for slice, enriched := range b.current.Load().enriched {
		require.NotSame(t, slice, enriched)
		kept = append(kept, weak.Make(enriched))
	}
	require.NotEmpty(t, kept)
	b.follower.delete(plugintest.Unstructured(t, object))
	require.True(t, b.pass(ctx))
	require.Nil(t, b.current.Load())
	runtime.GC()
	for _, one := range kept {
		require.Nil(t, one.Value())
	}
	runtime.KeepAlive(b)
}

// TestUnprocessedSliceRequestsAPass checks that a cycle that sees an unknown ResourceSlice starts a pass.
func TestUnprocessedSliceRequestsAPass(t *testing.T) {
	ctx, b := newBench(t, true, []*v1alpha1.DeviceAttributes{plugintest.AttributesTable("a", oneRow)}, plugintest.Slice(1))
	b.pass(ctx)
	for len(b.requests) > 0 {
		<-b.requests
	}
	b.current.Store(&view{drivers: b.current.Load().drivers})
	b.shown(t)
	require.Len(t, b.requests, 1)
}

// TestRunFollowsChanges checks that each change in the API reaches the scheduler's lists, and that the waiting pods are retried.
func TestRunFollowsChanges(t *testing.T) {
	ctx, b := newBench(t, true, nil, plugintest.Slice(1, 2), node(plugintest.NodeName, map[string]string{"rack": "1"}))
	go b.Run(ctx)
	b.eventually(t, map[string]string{"mla-1": "-", "mla-2": "-"})
	objects := b.client.Resource(Resource)

	object, err := objects.Create(ctx, plugintest.Unstructured(t, plugintest.AttributesTable("a", oneRow)), metav1.CreateOptions{})
	require.NoError(t, err)
	b.eventually(t, map[string]string{"mla-1": "10", "mla-2": "-"})
	require.Equal(t, []string{plugintest.Driver}, <-b.woken)

	changed := plugintest.AttributesTable("a", map[string]int64{"mla-2": 20})
	changed.Generation = 2
	_, err = objects.Update(ctx, plugintest.Unstructured(t, changed), metav1.UpdateOptions{})
	require.NoError(t, err)
	b.eventually(t, map[string]string{"mla-1": "-", "mla-2": "20"})
	require.Equal(t, []string{plugintest.Driver}, <-b.woken)

	slices := b.handle.Client.ResourceV1().ResourceSlices()
	replaced := plugintest.Slice(2, 3)
	replaced.Spec.Pool.Generation = 2
	_, err = slices.Update(ctx, replaced, metav1.UpdateOptions{})
	require.NoError(t, err)
	b.eventually(t, map[string]string{"mla-2": "20", "mla-3": "-"})
	require.Equal(t, []string{plugintest.Driver}, <-b.woken)

	selective := plugintest.AttributesTable("a", map[string]int64{"mla-3": 30})
	selective.Generation = 3
	selective.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"rack": "2"}}
	_, err = objects.Update(ctx, plugintest.Unstructured(t, selective), metav1.UpdateOptions{})
	require.NoError(t, err)
	b.eventually(t, map[string]string{"mla-2": "-", "mla-3": "-"})
	require.Equal(t, []string{plugintest.Driver}, <-b.woken)
	_, err = b.handle.Client.CoreV1().Nodes().Update(ctx, node(plugintest.NodeName, map[string]string{"rack": "2"}), metav1.UpdateOptions{})
	require.NoError(t, err)
	b.eventually(t, map[string]string{"mla-2": "-", "mla-3": "30"})
	require.Equal(t, []string{plugintest.Driver}, <-b.woken)

	require.NoError(t, objects.Delete(ctx, object.GetName(), metav1.DeleteOptions{}))
	b.eventually(t, map[string]string{"mla-2": "-", "mla-3": "-"})
	require.Eventually(t, func() bool { return b.current.Load() == nil }, waitFor, tick, "without objects, the feature is off")
}

// TestKindAppearsAndDisappears checks that the CRD can be installed and deleted while the scheduler runs.
func TestKindAppearsAndDisappears(t *testing.T) {
	ctx, b := newBench(t, false, []*v1alpha1.DeviceAttributes{plugintest.AttributesTable("a", oneRow)}, plugintest.Slice(1))
	require.False(t, b.follower.isServed(ctx))
	b.served.Store(true)
	require.True(t, b.follower.isServed(ctx))
	go b.Run(ctx)
	b.eventually(t, map[string]string{"mla-1": "10"})
	b.served.Store(false)
	require.False(t, b.follower.isServed(ctx))
	b.eventually(t, map[string]string{"mla-1": "-"})
}

// TestChangedDrivers checks which drivers have devices with other attributes than before.
func TestChangedDrivers(t *testing.T) {
	slice, enriched, other := plugintest.Slice(1), plugintest.Slice(1), plugintest.Slice(2)
	other.Spec.Driver = "other.example.com"
	with := func(shown map[*resourceapi.ResourceSlice]*resourceapi.ResourceSlice) *view {
		v := &view{drivers: sets.New[string](), enriched: shown}
		for slice := range shown {
			v.drivers.Insert(slice.Spec.Driver)
		}
		return v
	}
	type m = map[*resourceapi.ResourceSlice]*resourceapi.ResourceSlice
	starting := &view{drivers: with(m{slice: slice}).drivers}
	for name, test := range map[string]struct {
		before, after *view
		want          []string
	}{
		"nothing":            {nil, nil, nil},
		"an object":          {nil, with(m{slice: enriched, other: other}), []string{plugintest.Driver}},
		"no effect":          {nil, with(m{slice: slice}), nil},
		"the same":           {with(m{slice: enriched}), with(m{slice: enriched}), nil},
		"no object any more": {with(m{slice: enriched}), nil, []string{plugintest.Driver}},
		"after the start":    {starting, with(m{slice: slice}), []string{plugintest.Driver}},
		"deleted at start":   {starting, nil, []string{plugintest.Driver}},
		"a new slice":        {with(m{slice: enriched}), with(m{slice: enriched, enriched: enriched}), []string{plugintest.Driver}},
		"a slice is gone":    {with(m{slice: enriched}), &view{drivers: with(m{slice: slice}).drivers, enriched: m{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.ElementsMatch(t, test.want, changedDrivers(test.before, test.after).UnsortedList())
		})
	}
}

// TestUndecodableObject checks that an object of a newer version of the CRD has no effect, and harms no other object.
func TestUndecodableObject(t *testing.T) {
	ctx, b := newBench(t, true, []*v1alpha1.DeviceAttributes{plugintest.AttributesTable("a", oneRow)}, plugintest.Slice(1))
	strange := plugintest.Unstructured(t, plugintest.AttributesTable("b", oneRow))
	strange.Object["spec"] = map[string]any{"driver": []any{"a", "list"}}
	b.follower.set(ctx, strange)
	b.follower.set(ctx, "no object")
	b.pass(ctx)
	require.Equal(t, map[string]string{"mla-1": "10"}, b.shown(t))
	assert.Len(t, b.follower.list(), 1)
}

// TestPassSurvivesAnEndedContext checks that the result of the last pass stays if a pass can't be completed.
func TestPassSurvivesAnEndedContext(t *testing.T) {
	ctx, b := newBench(t, true, []*v1alpha1.DeviceAttributes{plugintest.AttributesTable("a", oneRow)}, plugintest.Slice(1))
	b.pass(ctx)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	object := plugintest.AttributesTable("a", map[string]int64{"mla-1": 11})
	object.Generation = 2
	object.Spec.Attributes = []v1alpha1.ComputedAttribute{{Name: "y", Expression: "1"}}
	object.Spec.NodeSelector = nil
	object.Spec.Table.Rows[0].Values["z"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(true)}
	b.follower.set(ctx, plugintest.Unstructured(t, object))
	require.True(t, b.pass(ended), "it is tried again")
	require.Equal(t, map[string]string{"mla-1": "10"}, b.shown(t))
	b.pass(ctx)
	require.Equal(t, map[string]string{"mla-1": "11"}, b.shown(t))
}
