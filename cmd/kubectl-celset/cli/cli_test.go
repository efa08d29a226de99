// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"reflect"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	apiversion "k8s.io/apimachinery/pkg/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	discoveryfake "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/structured"
	_ "k8s.io/kubernetes/pkg/features" // registers the gates
)

func TestGatesAreThoseOfTheScheduler(t *testing.T) {
	known := utilfeature.DefaultMutableFeatureGate.GetAllVersioned()
	ours := newGates().GetAllVersioned()
	for name := range gateVersions {
		require.Equal(t, known[name], ours[name], name)
	}
	require.Equal(t, utilfeature.DefaultMutableFeatureGate.EmulationVersion(), newest)
}

// TestGatesFollowTheAPIServer checks that features are off if the API server lacks them.
func TestGatesFollowTheAPIServer(t *testing.T) {
	g := newGates()
	server := &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{}, FakedServerVersion: &apiversion.Info{GitVersion: "v1.35.1-cloud.7"}}
	require.NoError(t, g.follow(t.Context(), server))
	require.False(t, g.features().ConsumableCapacity)
	require.True(t, g.features().PrioritizedList)

	server.FakedServerVersion = &apiversion.Info{GitVersion: "v1.38.0"}
	g = newGates()
	require.NoError(t, g.follow(t.Context(), server))
	require.Equal(t, newGates().features(), g.features())

	server.FakedServerVersion = &apiversion.Info{GitVersion: "v1.37.2", EmulationMajor: "1", EmulationMinor: "33"}
	require.EqualError(t, newGates().follow(t.Context(), server),
		"the API server offers Kubernetes 1.33: update the cluster to 1.34 or newer, because celset needs resource.k8s.io/v1")

	g = newGates()
	require.NoError(t, g.Set("DRADerivedAttributes=true"))
	server.FakedServerVersion = &apiversion.Info{GitVersion: "v1.36.0"}
	require.ErrorContains(t, g.follow(t.Context(), server), "--feature-gates, with an API server that offers Kubernetes 1.36: ")
}

// TestEachFeatureHasItsGates checks that each feature of the allocator is on if and only if its feature gates are on.
func TestEachFeatureHasItsGates(t *testing.T) {
	seen := make(map[int]bool)
	for name, specs := range gateVersions {
		g, plain := newGates(), newGates()
		if last := specs[len(specs)-1]; last.LockToDefault {
			require.NoError(t, g.SetEmulationVersion(last.Version.SubtractMinor(1)))
			require.NoError(t, plain.SetEmulationVersion(last.Version.SubtractMinor(1)))
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		g.addFlag(flags, io.Discard)
		value := "=true"
		if plain.Enabled(name) {
			value = "=false"
		}
		require.NoError(t, flags.Parse([]string{"--feature-gates=" + string(name) + value}))
		changed := differences(g.features(), plain.features())
		require.Len(t, changed, 1, name)
		seen[changed[0]] = true
	}
	require.Len(t, seen, reflect.TypeFor[structured.Features]().NumField())
}

func differences(a, b structured.Features) []int {
	var fields []int
	for i := range reflect.TypeFor[structured.Features]().NumField() {
		if reflect.ValueOf(a).Field(i).Bool() != reflect.ValueOf(b).Field(i).Bool() {
			fields = append(fields, i)
		}
	}
	return fields
}
