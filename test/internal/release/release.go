// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release builds small releases for tests of their content.
//
//	output, err := release.Build(folder)
package release

import (
	"runtime"

	"github.com/celset/celset/test/internal/tool"
)

// The version and registry of all test releases.
const (
	Version  = "v0.37.0-test"
	Registry = "registry.example.com/celset"
)

// Build makes make write a release for this machine's platform into a folder; all platforms would take minutes. variables are
// further variables of make. It returns make's output.
func Build(folder string, variables ...string) (output string, err error) {
	platform := "linux/" + runtime.GOARCH
	return tool.Make(append([]string{
		"release", "VERSION=" + Version, "REGISTRY=" + Registry, "DIST=" + folder, "PLATFORMS=" + platform, "PLUGIN_PLATFORMS=" + platform,
		"SOURCE_DATE_EPOCH=1750000000", "REVISION=test",
	}, variables...)...)
}
