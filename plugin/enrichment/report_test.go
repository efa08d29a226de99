// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package enrichment

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/plugintest"
)

// newReportBench is newBench with a clock that stands still, and with objects in a first report.
func newReportBench(t *testing.T, objects ...*v1alpha1.DeviceAttributes) (context.Context, *bench, *clocktesting.FakeClock) {
	t.Helper()
	ctx, b := newBench(t, true, objects, plugintest.Slice(1, 2))
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC))
	b.Clock = clock
	b.pass(ctx)
	require.Equal(t, statusSettles, b.reporter.writeDue(ctx), "the first write waits until the lists are complete")
	require.Zero(t, b.writes())
	clock.Step(statusSettles)
	return ctx, b, clock
}

// deliver delivers the object in the fake API to the follower.
func (b *bench) deliver(ctx context.Context, t *testing.T, name string) {
	t.Helper()
	object, err := b.client.Tracker().Get(Resource, "", name)
	require.NoError(t, err)
	b.follower.set(ctx, object)
}

// event returns the next event, or "".
func (b *bench) event() string {
	select {
	case event := <-b.events.Events:
		return event
	default:
		return ""
	}
}

// TestStatusIsWrittenOnce checks that a status is written if it changed, and that each generation has one event.
func TestStatusIsWrittenOnce(t *testing.T) {
	ctx, b, clock := newReportBench(t, plugintest.AttributesTable("a", map[string]int64{"mla-1": 10, "mla-9": 90}))
	require.Equal(t, statusRest, b.reporter.writeDue(ctx))
	status := b.status(t, "a")
	require.Equal(t, int64(1), status.ObservedGeneration)
	require.Equal(t, int32(2), status.Devices)
	require.Equal(t, int32(1), status.Attributes)
	require.Equal(t, &v1alpha1.UnmatchedRows{Count: 1, Keys: []string{"mla-9"}}, status.UnmatchedRows)
	require.True(t, meta.IsStatusConditionTrue(status.Conditions, wellknown.ConditionAttributesAccepted))
	require.Contains(t, b.event(), "Warning AttributesIncomplete 1 rows match no device")

	// The watch delivers the written object.
	b.deliver(ctx, t, "a")
	clock.Step(time.Hour)
	b.pass(ctx)
	b.reporter.writeDue(ctx)
	require.Equal(t, 1, b.writes(), "nothing has changed")

	// The numbers change, and the generation does not.
	_, err := b.handle.Client.ResourceV1().ResourceSlices().Update(ctx, plugintest.Slice(1, 9), metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return b.shown(t)["incomplete pool"] != "" }, waitFor, tick)
	b.pass(ctx)
	b.reporter.writeDue(ctx)
	require.Equal(t, 2, b.writes())
	require.Nil(t, b.status(t, "a").UnmatchedRows)
	require.Empty(t, b.event(), "the generation has an event")

	changed := plugintest.AttributesTable("a", map[string]int64{"mla-1": 10})
	changed.Generation, changed.Status = 2, b.status(t, "a")
	b.follower.set(ctx, plugintest.Unstructured(t, changed))
	b.reporter.writeDue(ctx)
	require.Equal(t, 2, b.writes(), "the report is for another generation")
	b.pass(ctx)
	require.Equal(t, statusRest, b.reporter.writeDue(ctx))
	require.Equal(t, 2, b.writes(), "two writes have a minimum distance")
	clock.Step(statusRest)
	b.reporter.writeDue(ctx)
	require.Equal(t, 3, b.writes())
	require.Equal(t, int64(2), b.status(t, "a").ObservedGeneration)
	require.Contains(t, b.event(), "Normal AttributesAdded 2 devices have 1 attributes")
}

// TestOnlyTheLeaderWrites checks that a scheduler writes no status while another one leads.
func TestOnlyTheLeaderWrites(t *testing.T) {
	ctx, b, clock := newReportBench(t, plugintest.AttributesTable("a", oneRow))
	b.follows.Store(true)
	require.Equal(t, statusRetry, b.reporter.writeDue(ctx))
	require.Zero(t, b.writes())
	b.follows.Store(false)
	clock.Step(statusRetry)
	b.reporter.writeDue(ctx)
	require.Equal(t, 1, b.writes())
}

// TestFailedWrites checks that a status is written again after a conflict and after an error, but not for a deleted object.
func TestFailedWrites(t *testing.T) {
	ctx, b, clock := newReportBench(t, plugintest.AttributesTable("a", oneRow))
	var failure error
	b.client.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return failure != nil, nil, failure })
	for i, err := range []error{
		apierrors.NewConflict(Resource.GroupResource(), "a", errors.New("changed")), errors.New("no answer"), errors.New("no answer"), nil,
	} {
		failure = err
		want := statusRetry
		if err == nil {
			want = statusRest
		}
		require.Equal(t, want, b.reporter.writeDue(ctx), i)
		require.Equal(t, i+1, b.writes())
		clock.Step(statusRetry)
	}
	require.Equal(t, int64(1), b.status(t, "a").ObservedGeneration)

	ctx, b, _ = newReportBench(t, plugintest.AttributesTable("a", oneRow))
	failure = apierrors.NewNotFound(Resource.GroupResource(), "a")
	b.client.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, failure })
	require.Equal(t, statusRest, b.reporter.writeDue(ctx))
	b.follower.clear()
	b.pass(ctx)
	b.reporter.writeDue(ctx)
	require.Equal(t, 1, b.writes())
	require.Empty(t, b.reporter.due, "deleted objects are forgotten")
}

// TestEventsSayWhatIsWrong checks the events of a rejected object, of a conflict, and that a note is cut to the API server's limit.
func TestEventsSayWhatIsWrong(t *testing.T) {
	rejected := plugintest.AttributesTable("rejected", oneRow)
	rejected.Spec.Table = nil
	rejected.Spec.Attributes = []v1alpha1.ComputedAttribute{{Name: "x", Expression: "unknown_" + strings.Repeat("é", maxNote)}}
	ctx, b, _ := newReportBench(t, rejected, plugintest.AttributesTable("a", map[string]int64{"mla-1": 1}), plugintest.AttributesTable("b", map[string]int64{"mla-1": 2}))
	b.reporter.writeDue(ctx)
	require.Equal(t, 3, b.writes())
	for range 2 {
		require.Contains(t, b.event(), "Warning AttributesIncomplete 1 attributes have different values")
	}
	event := b.event()
	require.Contains(t, event, "Warning AttributesRejected ")
	require.LessOrEqual(t, len(event), maxNote+len("Warning AttributesRejected "))
	for _, name := range []string{"a", "b"} {
		require.True(t, meta.IsStatusConditionTrue(b.status(t, name).Conditions, wellknown.ConditionAttributesConflicted), name)
	}
	require.Equal(t, map[string]string{"mla-1": "-", "mla-2": "-"}, b.shown(t), "a device with a conflict has no value")
	require.Subset(t, plugintest.MetricValues(t, b.registry), map[string]float64{
		"device_attributes_objects accepted": 2, "device_attributes_objects rejected": 1, "device_attributes_problems conflict": 2,
	})
}

// TestReporterRuns checks that the goroutine of the reporter writes without a further request.
func TestReporterRuns(t *testing.T) {
	ctx, b := newBench(t, true, []*v1alpha1.DeviceAttributes{plugintest.AttributesTable("a", oneRow)}, plugintest.Slice(1))
	go b.Run(ctx)
	require.Eventually(t, func() bool { return b.status(t, "a").ObservedGeneration == 1 }, waitFor, tick)
}
