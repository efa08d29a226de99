// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release makes small releases for tests of what is in them.
//
//	output, err := release.Build(folder)
package release

import (
	"runtime"

	"github.com/celset/celset/test/internal/tool"
)

// Of all releases that tests make.
const (
	Version  = "v0.37.0-test"
	Registry = "registry.example.com/celset"
)

// Build has make write a release into a folder, for the platform of this machine only: all take
// minutes. Variables are further ones of make. It returns what was printed.
func Build(folder string, variables ...string) (output string, err error) {
	platform := "linux/" + runtime.GOARCH
	return tool.Make(append([]string{
		"release", "VERSION=" + Version, "REGISTRY=" + Registry, "DIST=" + folder, "PLATFORMS=" + platform, "PLUGIN_PLATFORMS=" + platform,
		"SOURCE_DATE_EPOCH=1750000000", "REVISION=test",
	}, variables...)...)
}
