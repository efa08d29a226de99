// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	compbase "k8s.io/component-base/metrics"

	"github.com/celset/celset/placement/metrics"
)

// One operation is what the metrics add to one evaluation of one expression.
func BenchmarkEvaluation(b *testing.B) {
	measured, err := metrics.New(metrics.Options{Registerer: compbase.NewKubeRegistry().Registerer()})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		start := measured.Now()
		measured.ObserveDuration("managedCluster", measured.Now().Sub(start))
		measured.ObserveEvaluation("managedCluster", 12, nil)
	}
}
