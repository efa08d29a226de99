// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics"
)

func gaugeOf(t *testing.T, registry metrics.KubeRegistry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	require.Fail(t, "there is no metric "+name)
	return 0
}
