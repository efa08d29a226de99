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

// The version and the registry of releases that tests build.
const (
	Version  = "v0.37.0-test"
	Registry = "registry.example.com/celset"
)

// Build runs make to write a release into a folder, with additional variables. It builds only for this machine's platform,
// because all platforms would take minutes. It returns the output of make.
func Build(folder string, variables ...string) (output string, err error) {
	platform := "linux/" + runtime.GOARCH
	return tool.Make(append([]string{
		"release", "VERSION=" + Version, "REGISTRY=" + Registry, "DIST=" + folder, "PLATFORMS=" + platform, "PLUGIN_PLATFORMS=" + platform,
		"SOURCE_DATE_EPOCH=1750000000", "REVISION=test",
	}, variables...)...)
}
