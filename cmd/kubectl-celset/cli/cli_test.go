// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
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

	"github.com/celset/celset/internal/topology"
)

func TestGatesAreThoseOfTheScheduler(t *testing.T) {
	known := utilfeature.DefaultMutableFeatureGate.GetAllVersioned()
	ours := newGates().GetAllVersioned()
	for name := range gateVersions {
		require.Equal(t, known[name], ours[name], name)
	}
	require.Equal(t, utilfeature.DefaultMutableFeatureGate.EmulationVersion(), newest)
}

// What the API server lacks, the scheduler does not do.
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

	server.FakedServerVersion = &apiversion.Info{GitVersion: "v1.37.1", EmulationMajor: "1", EmulationMinor: "33"}
	require.EqualError(t, newGates().follow(t.Context(), server),
		"the API server offers Kubernetes 1.33: celset needs 1.34 or newer, where resource.k8s.io/v1 began")

	g = newGates()
	require.NoError(t, g.Set("DRADerivedAttributes=true"))
	server.FakedServerVersion = &apiversion.Info{GitVersion: "v1.36.0"}
	require.ErrorContains(t, g.follow(t.Context(), server), "--feature-gates, with an API server that offers Kubernetes 1.36: ")
}

// Each feature of the allocator can be switched with gates, and with these gates only.
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

// TestTerminal writes texts in pieces of each size.
func TestTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\n":                         "a\tb\n",
		"größer → 4×4":                   "größer → 4×4",
		"\x1b]52;c;ZWNobwo=\x07":         `\x1b]52;c;ZWNobwo=\a`,
		"\x1b[2J\r\x00\x7f":              `\x1b[2J\r\x00\x7f`,
		"\u009b31m":                      `\u009b31m`,
		"\x9b31m \xff":                   `\x9b31m \xff`,
		topology.Colors()[0] + "x\x1b[m": topology.Colors()[0] + `x\x1b[m`,
	} {
		for size := 1; size <= len(text); size++ {
			if bytes.ContainsRune([]byte(text), '\x1b') && size < len(text) {
				// A color is written at once.
				continue
			}
			var out bytes.Buffer
			w := &terminal{to: &out}
			for rest := []byte(text); len(rest) > 0; {
				n, err := w.Write(rest[:min(size, len(rest))])
				require.NoError(t, err)
				rest = rest[n:]
			}
			require.Equal(t, want, out.String(), "%q in pieces of %d", text, size)
		}
	}
}
