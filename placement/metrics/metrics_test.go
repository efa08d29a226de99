// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/placement/metrics"
)

// bench has a scheduler with metrics and a fake clock. Each reading of the clock advances it by a millisecond.
type bench struct {
	*metrics.Metrics
	registry  compbase.KubeRegistry
	scheduler *placement.Scheduler
	snapshot  *placement.Snapshot
	looks     int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{registry: compbase.NewKubeRegistry()}
	var err error
	b.Metrics, err = metrics.New(metrics.Options{Registerer: b.registry.Registerer(), Now: func() time.Time {
		b.looks++
		return time.UnixMilli(int64(b.looks))
	}})
	require.NoError(t, err)
	config, err := b.Scheduling()
	require.NoError(t, err)
	b.scheduler, err = placement.NewScheduler(config)
	require.NoError(t, err)
	b.snapshot = &placement.Snapshot{
		ClusterSets: []*clusterv1beta2.ManagedClusterSet{{ObjectMeta: metav1.ObjectMeta{Name: "global"}, Spec: clusterv1beta2.ManagedClusterSetSpec{
			ClusterSelector: clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{}},
		}}},
		Bindings: []*clusterv1beta2.ManagedClusterSetBinding{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "global"}}},
	}
	for _, name := range []string{"a", "b", "c"} {
		b.snapshot.Clusters = append(b.snapshot.Clusters, &clusterv1.ManagedCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", ResourceVersion: "1", Labels: map[string]string{"name": name}},
		})
	}
	// Cluster a reports a number of processors that is out of range.
	b.snapshot.Clusters[0].Status.Allocatable = clusterv1.ResourceList{"cpu": resource.MustParse("1e1000")}
	b.snapshot.Clusters[0].Status.Capacity = b.snapshot.Clusters[0].Status.Allocatable
	return b
}

// values returns all counters, and the number of observations of each histogram, if they are not zero.
func (b *bench) values(t *testing.T) map[string]uint64 {
	t.Helper()
	families, err := b.registry.Gather()
	require.NoError(t, err)
	result := map[string]uint64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "celset_placement_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			if n := metric.GetHistogram().GetSampleCount() + uint64(metric.GetCounter().GetValue()); n > 0 {
				result[name] = n
			}
		}
	}
	return result
}

func (b *bench) text(t *testing.T) string {
	t.Helper()
	values, text := b.values(t), fmt.Sprintf("looks at the clock: %d\n", b.looks)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		text += fmt.Sprintf("%s: %d\n", name, values[name])
	}
	return text
}

// TestCounted runs the commands of a file: each decides a Placement, with a new spec if there is one. The output has the
// metrics that changed. "go test ./placement/metrics -rewrite" updates the output.
func TestCounted(t *testing.T) {
	var b *bench
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}}
	datadriven.RunTest(t, "testdata/counted", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "new":
			b = newBench(t)
		case "change":
			changed := b.snapshot.Clusters[2].DeepCopy()
			changed.ResourceVersion += "1"
			b.snapshot.Clusters[2] = changed
		case "break":
			b.snapshot.Scores = broken{}
		case "writing":
			conflicting := apierrors.NewConflict(schema.GroupResource{Resource: "placementdecisions"}, "p-decision-1", errors.New("changed"))
			for _, err := range []error{nil, fmt.Errorf("update: %w", conflicting), errors.New("no")} {
				b.ObserveWriting()(err)
			}
		case "turns":
			for _, turn := range []string{controller.TurnDone, controller.TurnContinued, controller.TurnContinued, controller.TurnFailed} {
				b.ObserveTurn(turn, turn != controller.TurnDone)
			}
		case "place", "decide":
			if d.Cmd == "place" {
				object.Generation, object.Spec = object.Generation+1, clusterv1beta1.PlacementSpec{}
				require.NoError(t, yaml.UnmarshalStrict([]byte(d.Input), &object.Spec))
			}
			_, err := b.scheduler.Schedule(t.Context(), object, b.snapshot, time.Unix(1, 0))
			require.Equal(t, d.HasArg("fails"), err != nil)
		}
		return b.text(t)
	})
}

type broken struct{}

func (broken) FindScore(string, string) (*clusterv1alpha1.AddOnPlacementScore, error) {
	return nil, context.DeadlineExceeded
}

func TestDurations(t *testing.T) {
	b := newBench(t)
	end := b.ObserveWriting()
	b.looks += 999
	end(nil)
	b.ObserveEvaluation("", 300, errors.New("of no known kind"))
	b.ObserveDuration("", 20*time.Microsecond)
	sums := map[string]float64{}
	families, err := b.registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if histogram := family.GetMetric()[0].GetHistogram(); histogram.GetSampleCount() > 0 {
			sums[family.GetName()] = histogram.GetSampleSum()
		}
	}
	require.Equal(t, map[string]float64{
		"celset_placement_writing_duration_seconds":        1,
		"celset_placement_cel_evaluation_cost":             300,
		"celset_placement_cel_evaluation_duration_seconds": 20e-6,
	}, sums)
	require.EqualValues(t, 1, b.values(t)["cel_evaluation_failures_total Unknown"])
}

// TestConventions checks that names, units and help texts follow the conventions of Prometheus, and that each help text has the
// stability level.
func TestConventions(t *testing.T) {
	b := newBench(t)
	b.ObserveWriting()(nil)
	b.ObserveEvaluation("", 300, errors.New("of no known kind"))
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
	require.NoError(t, yaml.Unmarshal([]byte(`{
  predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["true"]}}}],
  prioritizerPolicy: {configurations: [{weight: 1, scoreCoordinate: {type: BuiltIn, builtIn: ResourceAllocatableCPU}}]}}`), &object.Spec))
	_, err := b.scheduler.Schedule(t.Context(), object, b.snapshot, time.Unix(1, 0))
	require.NoError(t, err)
	families, err := b.registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 11)
	for _, family := range families {
		if family.GetName() == "celset_placement_turns_total" {
			require.Len(t, family.GetMetric(), 8, "all are there from the start")
		}
		require.True(t, strings.HasPrefix(family.GetName(), "celset_placement_"), family.GetName())
		require.True(t, strings.HasPrefix(family.GetHelp(), "[ALPHA] "), family.GetHelp())
	}
	response := httptest.NewRecorder()
	compbase.HandlerFor(b.registry, compbase.HandlerOpts{}).ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Contains(t, response.Body.String(), "celset_placement_cel_evaluation_cost_bucket")
	problems, err := testutil.NewPromLinter(response.Body).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestNewRefuses(t *testing.T) {
	_, err := metrics.New(metrics.Options{})
	require.ErrorContains(t, err, "the registry is missing")
	b := newBench(t)
	_, err = metrics.New(metrics.Options{Registerer: b.registry.Registerer()})
	require.ErrorContains(t, err, "register metric celset_placement_scheduling_duration_seconds: duplicate")
}
