// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	require.Equal(t, "v1.2.3", of(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, true))
	require.Equal(t, "(devel)", of(&debug.BuildInfo{}, true), "built from files")
	require.Equal(t, "(devel)", of(nil, false), "built without modules")
	require.NotEmpty(t, Get())

	info := &debug.BuildInfo{Deps: []*debug.Module{{Path: "k8s.io/api", Version: "v0.36.0"}, {Path: "k8s.io/client-go", Version: "v0.37.2"}}}
	require.Equal(t, "v1.2.3 (Kubernetes v1.37.2)", text("v1.2.3", kubernetes(info, true)))
	require.Equal(t, "v1.2.3", text("v1.2.3", kubernetes(&debug.BuildInfo{}, true)), "a program without client-go")
	require.Empty(t, kubernetes(nil, false))
	require.Contains(t, Text(), Get())
}

func TestBuildInfo(t *testing.T) {
	require.NoError(t, RegisterBuildInfo(prometheus.NewRegistry()))
	require.Equal(t, "abc", commit(&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "abc"}}}, true))
	require.Empty(t, commit(&debug.BuildInfo{}, true))
	require.Empty(t, commit(nil, false))
}
