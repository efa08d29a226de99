// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/kubernetes/pkg/features" // registers kube-scheduler's feature gates

	"github.com/celset/celset/plugin"
	"github.com/celset/celset/test/internal/helm"
)

// TestSchemaHasTheGatesOfTheScheduler checks that the chart's schema rejects a feature gate if and only if celset-scheduler
// rejects it.
func TestSchemaHasTheGatesOfTheScheduler(t *testing.T) {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	require.NoError(t, plugin.AddFeatureGates(gates))
	content, err := os.ReadFile(filepath.Join(helm.Chart(t), "values.schema.json"))
	require.NoError(t, err)
	var schema struct {
		Definitions struct {
			FeatureGates struct {
				Properties map[featuregate.Feature]any `json:"properties"`
			} `json:"featureGates"`
		} `json:"definitions"`
	}
	require.NoError(t, json.Unmarshal(content, &schema))
	require.Equal(t, slices.Sorted(maps.Keys(gates.GetAll())), slices.Sorted(maps.Keys(schema.Definitions.FeatureGates.Properties)))
}
