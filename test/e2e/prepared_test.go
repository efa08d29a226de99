// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics/testutil"
)

// specs are the files with which drivers tell the runtime of devices, one a claim.
func specs() ([]string, error) {
	entries, err := os.ReadDir(cluster.node.CDIDir())
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, err
}

// waitUnprepared waits until no claim is prepared.
func waitUnprepared(ctx context.Context) error {
	var left []string
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(context.Context) (_ bool, err error) {
		left, err = specs()
		return err == nil && len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait until nothing is prepared: %w: %s", err, strings.Join(left, ", "))
	}
	return nil
}

// refused is how often the driver of a story has seen a device that was prepared for
// another claim.
func refused(t *testing.T, s *told) float64 {
	t.Helper()
	content, err := cluster.drivers[s.Pod].Get(t.Context(), "/metrics")
	require.NoError(t, err)
	families, err := testutil.TextToMetricFamilies(bytes.NewReader(content))
	require.NoError(t, err)
	sum := 0.0
	family := families["celset_topology_driver_double_allocations_total"]
	require.NotNil(t, family, "the metric has another name")
	for _, metric := range family.Metric {
		sum += metric.GetCounter().GetValue()
	}
	return sum
}
