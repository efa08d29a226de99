// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"reflect"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/dynamic-resource-allocation/structured"
	_ "k8s.io/kubernetes/pkg/features" // registers the gates
)

func TestDefaultsAreThoseOfTheScheduler(t *testing.T) {
	for name, spec := range gateDefaults {
		require.Equal(t, utilfeature.DefaultFeatureGate.Enabled(name), spec.Default, name)
	}
}

// Each feature of the allocator can be switched with gates, and with these gates only.
func TestEachFeatureHasItsGates(t *testing.T) {
	seen := make(map[int]bool)
	for name, spec := range gateDefaults {
		g := newGates()
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		g.addFlag(flags)
		value := "=true"
		if spec.Default {
			value = "=false"
		}
		require.NoError(t, flags.Parse([]string{"--feature-gates=" + string(name) + value}))
		changed := differences(g.features(), newGates().features())
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
