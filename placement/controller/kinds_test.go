// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
)

// What the controller reads and writes has the types of Open Cluster Management's API
// module, so that every program that uses them understands it.
func TestKindsAreThoseOfTheAPIModule(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, AddToScheme(scheme))
	found := map[string]bool{}
	for kind, of := range scheme.AllKnownTypes() {
		if kind.Group != "cluster.open-cluster-management.io" || strings.HasPrefix(of.PkgPath(), "k8s.io/apimachinery/") {
			continue
		}
		require.Equal(t, "open-cluster-management.io/api/cluster/"+kind.Version, of.PkgPath(), kind)
		found[kind.Version+" "+kind.Kind] = true
	}
	for _, kind := range []string{
		"v1 ManagedCluster", "v1beta2 ManagedClusterSet", "v1beta2 ManagedClusterSetBinding",
		"v1alpha1 AddOnPlacementScore", "v1beta1 Placement", "v1beta1 PlacementDecision",
	} {
		require.True(t, found[kind], kind)
	}
}
