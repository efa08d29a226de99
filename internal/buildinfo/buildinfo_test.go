// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package buildinfo

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
)

func TestRegister(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		require.NoError(t, Register(registry, Info{Version: "v0.37.2", Kubernetes: "v1.37.2", Commit: "abc"}))
	}
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP celset_build_info [ALPHA] Always 1. The labels are the version of celset, the version of Kubernetes that the program was built from, and the commit of celset.
# TYPE celset_build_info gauge
celset_build_info{commit="abc",kubernetes="v1.37.2",version="v0.37.2"} 1
`)))

	other := prometheus.NewRegistry()
	other.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "celset_build_info", Help: "Of somebody else."}))
	require.ErrorContains(t, Register(other, Info{}), "register metric celset_build_info: ")
}
