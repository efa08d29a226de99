// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/cluster"
)

func TestReleases(t *testing.T) {
	environment, err := cluster.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	const version = `managedCluster.status.version.kubernetes`
	for expression, want := range map[string][]string{
		`semver(` + version + `, true).compareTo(semver("1.31.0")) >= 0`:                     {"1.31.0"},
		`semver("v1.31", true).isLessThan(semver(` + version + `, true))`:                    {"1.31.0"},
		`semver(` + version + `).isGreaterThan(semver("1.31.0-0"))`:                          {},
		`semver(` + version + `.split("-")[0], true).isGreaterThan(semver("1.31.0"))`:        {},
		`semver("1.30.0").isLessThan(semver("1.31.0"))`:                                      {},
		`semver(managedCluster.metadata.name).isGreaterThan(semver("1.31.0"))`:               {},
		`quantity("1").isLessThan(quantity("2"))`:                                            {},
		`semver(` + version + `, true).isLessThan(semver(managedCluster.metadata.labels.a))`: {},
	} {
		selector, err := environment.Compile(t.Context(), clusterv1beta1.ClusterSelector{
			CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{expression}},
		}, nil)
		require.NoError(t, err, expression)
		require.Equal(t, sets.New(want...), selector.Releases(), expression)
	}
}
