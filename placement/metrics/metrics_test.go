// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// bench is a scheduler that is measured with a clock that goes on by a millisecond
// each time somebody looks at it.
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
	return b
}

// schedule decides the generation of a Placement with a spec in YAML.
func (b *bench) schedule(t *testing.T, generation int64, spec string) error {
	t.Helper()
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Generation: generation}}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &object.Spec))
	_, err := b.scheduler.Schedule(t.Context(), object, b.snapshot, time.Unix(1, 0))
	return err
}

// values are the counters and the counts of histograms that are not zero.
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

func (b *bench) requireValues(t *testing.T, want map[string]uint64) {
	t.Helper()
	require.Empty(t, cmp.Diff(want, b.values(t)))
}

const (
	withoutCEL = `
predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {name: a}}}}]
prioritizerPolicy: {mode: Exact, configurations: [
  {weight: 1, scoreCoordinate: {type: BuiltIn, builtIn: Steady}},
  {weight: 1, scoreCoordinate: {type: AddOn, addOn: {resourceName: secret, scoreName: x}}},
  {weight: 1, scoreCoordinate: {type: AddOn, addOn: {resourceName: secret, scoreName: y}}}]}
spreadPolicy: {spreadConstraints: [{topologyKey: name, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}
`
	withCEL = `
predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [
  'managedCluster.metadata.name != "a"', '1 / (managedCluster.metadata.name == "b" ? 0 : 1) == 1']}}}]
prioritizerPolicy: {mode: Exact}
`
)

func TestWithoutCEL(t *testing.T) {
	b := newBench(t)
	b.requireValues(t, map[string]uint64{})
	require.NoError(t, b.schedule(t, 1, withoutCEL))
	b.requireValues(t, map[string]uint64{
		"scheduling_duration_seconds decided":            1,
		"plugin_duration_seconds Predicate filter":       1,
		"plugin_duration_seconds TaintToleration filter": 1,
		"plugin_duration_seconds Steady prioritizer":     1,
		"plugin_duration_seconds AddOn prioritizer":      2,
		"plugin_duration_seconds Spread spread":          1,
		"cluster_matches_total evaluated":                3,
	})
	require.Equal(t, 2*(1+6), b.looks, "nothing but Placement and plugins is timed")
}

func TestCEL(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.schedule(t, 1, withCEL))
	first := map[string]uint64{
		"scheduling_duration_seconds decided":            1,
		"plugin_duration_seconds Predicate filter":       1,
		"plugin_duration_seconds TaintToleration filter": 1,
		"cluster_matches_total evaluated":                3,
		"cel_evaluation_duration_seconds":                5,
		"cel_evaluation_cost":                            5,
		"cel_evaluation_failures_total Runtime":          1,
		"cel_compilations_total compiled":                2,
	}
	b.requireValues(t, first)

	changed := b.snapshot.Clusters[2].DeepCopy()
	changed.ResourceVersion = "2"
	b.snapshot.Clusters[2] = changed
	require.NoError(t, b.schedule(t, 1, withCEL))
	for name, more := range map[string]uint64{
		"scheduling_duration_seconds decided":            1,
		"plugin_duration_seconds Predicate filter":       1,
		"plugin_duration_seconds TaintToleration filter": 1,
		"cluster_matches_total evaluated":                1,
		"cluster_matches_total remembered":               2,
		"cel_evaluation_duration_seconds":                2,
		"cel_evaluation_cost":                            2,
	} {
		first[name] += more
	}
	b.requireValues(t, first)
}

func TestOutcomes(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.schedule(t, 1, `{numberOfClusters: -1, prioritizerPolicy: {mode: Exact}}`))
	expression := `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['a b', '1']}}}]`
	require.NoError(t, b.schedule(t, 2, expression))
	require.NoError(t, b.schedule(t, 3, expression))
	b.snapshot.Scores = broken{}
	require.Error(t, b.schedule(t, 4, `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.scores("r").size() > 0']}}}]`))

	conflicting := apierrors.NewConflict(schema.GroupResource{Resource: "placementdecisions"}, "p-decision-1", errors.New("changed"))
	for _, err := range []error{nil, fmt.Errorf("update: %w", conflicting), errors.New("no")} {
		b.ObserveWriting()(err)
	}
	b.requireValues(t, map[string]uint64{
		"scheduling_duration_seconds standing":     3,
		"scheduling_duration_seconds error":        1,
		"plugin_duration_seconds Predicate filter": 1,
		"cel_evaluation_duration_seconds":          1,
		"cel_evaluation_cost":                      1,
		"cel_evaluation_failures_total Runtime":    1,
		"cel_compilations_total compiled":          1,
		"cel_compilations_total refused":           2,
		"cel_compilations_total remembered":        2,
		"writing_duration_seconds written":         1,
		"writing_duration_seconds conflict":        1,
		"writing_duration_seconds error":           1,
	})
}

func TestTurns(t *testing.T) {
	b := newBench(t)
	require.Len(t, b.series(t, "celset_placement_turns_total"), 8, "all are there from the start")
	for _, turn := range []string{controller.TurnDone, controller.TurnContinued, controller.TurnContinued, controller.TurnFailed} {
		b.ObserveTurn(turn, turn != controller.TurnDone)
	}
	require.Len(t, b.series(t, "celset_placement_turns_total"), 8)
	b.requireValues(t, map[string]uint64{"turns_total done usual": 1, "turns_total continued slow": 2, "turns_total failed slow": 1})
}

// series are those of a metric.
func (b *bench) series(t *testing.T, name string) []string {
	t.Helper()
	families, err := b.registry.Gather()
	require.NoError(t, err)
	var result []string
	for _, family := range families {
		if family.GetName() == name {
			for _, metric := range family.GetMetric() {
				result = append(result, metric.String())
			}
		}
	}
	return result
}

func TestValuesOutOfRange(t *testing.T) {
	b := newBench(t)
	b.snapshot.Clusters[0].Status.Allocatable = clusterv1.ResourceList{"cpu": resource.MustParse("1e1000")}
	b.snapshot.Clusters[0].Status.Capacity = b.snapshot.Clusters[0].Status.Allocatable
	spec := `prioritizerPolicy: {mode: Exact, configurations: [
  {weight: 1, scoreCoordinate: {type: BuiltIn, builtIn: ResourceAllocatableCPU}}]}`
	require.NoError(t, b.schedule(t, 1, spec))
	require.NoError(t, b.schedule(t, 1, spec))
	require.EqualValues(t, 2, b.values(t)["values_out_of_range_total ResourceAllocatableCPU"])
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

// Names, units and help texts are as Prometheus wants them, and every text says how
// stable the metric is.
func TestConventions(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.schedule(t, 1, withoutCEL))
	require.NoError(t, b.schedule(t, 2, withCEL))
	b.ObserveWriting()(nil)
	families, err := b.registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 10)
	for _, family := range families {
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
	require.ErrorContains(t, err, "there is no registry")
	b := newBench(t)
	_, err = metrics.New(metrics.Options{Registerer: b.registry.Registerer()})
	require.ErrorContains(t, err, "register metric celset_placement_scheduling_duration_seconds: duplicate")
}
