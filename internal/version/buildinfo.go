// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/celset/celset/internal/buildinfo"
)

// RegisterBuildInfo registers the metric celset_build_info with the versions of this program.
func RegisterBuildInfo(registry prometheus.Registerer) error {
	info, ok := debug.ReadBuildInfo()
	return buildinfo.Register(registry, buildinfo.Info{Version: Get(), Kubernetes: kubernetes(info, ok), Commit: commit(info, ok)})
}

func commit(info *debug.BuildInfo, ok bool) string {
	if revision != "" || !ok {
		return revision
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}
