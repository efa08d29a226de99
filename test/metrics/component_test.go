// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	compbase "k8s.io/component-base/metrics"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/admission/guard/server"
	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/buildinfo"
	"github.com/celset/celset/plugin/metrics"
	"github.com/celset/celset/test/topologydriver"
)

// components maps each program in docs/METRICS.md to a function that registers the program's metrics and creates each time
// series once.
var components = map[string]func(*testing.T, *recorder){
	"All programs": func(t *testing.T, r *recorder) {
		info := buildinfo.Info{Version: "v0.37.2", Kubernetes: "v1.37.2", Commit: "0123abc"}
		require.NoError(t, buildinfo.Register(r.Registerer(), info))
	},
	"celset-scheduler": exerciseScheduler,
	"celset-placement": exercisePlacement,
	// The driver creates all its time series when it starts, so no more is needed.
	"celset-topology-driver": func(t *testing.T, r *recorder) {
		_, err := topologydriver.NewMetrics(r, "mla.example.com")
		require.NoError(t, err)
	},
	// The webhook creates all its time series when it starts, so no more is needed.
	"celset-webhook": func(t *testing.T, r *recorder) {
		_, err := server.NewMetrics(r.Registerer())
		require.NoError(t, err)
	},
}

// A metric describes a metric, as found in docs/METRICS.md or in the registry.
type metric struct {
	help    string
	kind    string
	labels  map[string][]string
	buckets []float64
	// series is the number of time series in the registry. The page does not contain it.
	series int
}

// A recorder is a registry that also records the names of metrics that have no values. It does not record metrics that are
// registered with its Registerer.
type recorder struct {
	compbase.KubeRegistry
	names []string
}

func (r *recorder) Register(one compbase.Registerable) error {
	r.names = append(r.names, one.FQName())
	return r.KubeRegistry.Register(one)
}

var nameOfDesc = regexp.MustCompile(`fqName: "([^"]+)"`)

func (r *recorder) CustomRegister(all compbase.StableCollector) error {
	descs := make(chan *compbase.Desc)
	go func() {
		defer close(descs)
		all.DescribeWithStability(descs)
	}()
	for desc := range descs {
		r.names = append(r.names, nameOfDesc.FindStringSubmatch(desc.String())[1])
	}
	return r.KubeRegistry.CustomRegister(all)
}

// registered returns the metrics that a component has registered, by name.
func registered(t *testing.T, component string) map[string]metric {
	t.Helper()
	r := &recorder{KubeRegistry: compbase.NewKubeRegistry()}
	components[component](t, r)
	families, err := r.Gather()
	require.NoError(t, err)
	result := map[string]metric{}
	for _, family := range families {
		help, alpha := strings.CutPrefix(family.GetHelp(), "[ALPHA] ")
		require.True(t, alpha, "%s is not marked as ALPHA", family.GetName())
		m := metric{help: help, kind: strings.ToLower(family.GetType().String()), labels: map[string][]string{}}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if values := m.labels[label.GetName()]; !slices.Contains(values, label.GetValue()) {
					m.labels[label.GetName()] = append(values, label.GetValue())
				}
			}
			m.series++
			if histogram := series.GetHistogram(); histogram != nil {
				m.buckets = nil
				for _, bucket := range histogram.GetBucket() {
					if !math.IsInf(bucket.GetUpperBound(), 1) {
						m.buckets = append(m.buckets, bucket.GetUpperBound())
					}
				}
				m.series += len(m.buckets) + 2
			}
		}
		result[family.GetName()] = m
	}
	if r.names != nil {
		require.ElementsMatch(t, r.names, slices.Collect(maps.Keys(result)), "exercise each metric of %s here", component)
	}
	return result
}

// exerciseScheduler creates a time series for each combination of labels.
func exerciseScheduler(t *testing.T, r *recorder) {
	t.Helper()
	measured, err := metrics.New(r, time.Now)
	require.NoError(t, err)
	attribute, reference := claim("example.com/numa"), claim("celset.dev/ring")
	for _, claims := range [][]*resourceapi.ResourceClaim{nil, {attribute}, {reference}} {
		measured.ObserveAllocation(claims, false)(true, allocator.Stats{}, nil)
		measured.ObserveAllocation(claims, false)(false, allocator.Stats{}, nil)
		for _, err := range []error{
			errors.New("any"), context.Canceled, context.DeadlineExceeded,
			&allocator.BudgetError{Unit: allocator.BudgetCost}, &allocator.BudgetError{Unit: allocator.BudgetSteps},
			&allocator.BudgetError{Unit: allocator.BudgetCost, Attempt: true}, &allocator.BudgetError{Unit: allocator.BudgetSteps, Attempt: true},
		} {
			measured.ObserveAllocation(claims, false)(false, allocator.Stats{}, fmt.Errorf("wrapped: %w", err))
			measured.ObserveNodeSet()(false, err)
		}
	}
	measured.ObserveNodeSet()(true, nil)
	measured.ObserveNodeSet()(false, nil)
	for _, reason := range []cel.Reason{cel.ReasonRuntime, cel.ReasonType, cel.ReasonCostLimit, cel.ReasonBudget, cel.ReasonInterrupted} {
		measured.ObserveEvaluation("devices", 1, &cel.Error{Reason: reason})
	}
	measured.ObserveEvaluation("devices", 1, errors.New("any"))
	measured.WatchHolds(func() int { return 1 })
	measured.ShowAttributes(metrics.Attributes{})
	measured.ObserveEnrichment()()
	measured.ObserveCompilation("devices", true, nil)
	measured.ObserveCompilation("devices", false, nil)
	measured.ObserveCompilation("devices", false, errors.New("any"))
	for _, reason := range []metrics.Refusal{
		metrics.RefusalGate, metrics.RefusalConstraint, metrics.RefusalSelector, metrics.RefusalBackOff, metrics.RefusalShare,
	} {
		measured.ObserveRefusal(reason)
	}
	for _, outcome := range []metrics.CountOutcome{metrics.CountComplete, metrics.CountPartial, metrics.CountUnchanged, metrics.CountFailed} {
		measured.ObserveCount(outcome)
	}
	measured.ShowFragmentation(&metrics.Fragmentation{Report: &fragmentation.Report{Shapes: []fragmentation.Shape{
		{Class: "gpu.example.com", Constraint: "block", Devices: 8},
	}}})
	measured.WatchClaims(func() ([]*resourceapi.ResourceClaim, error) { return nil, nil })
}

func claim(attribute resourceapi.FullyQualifiedName) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
		Constraints: []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(attribute)}},
	}}}
}
