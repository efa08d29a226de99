// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release makes small releases for tests of what is in them.
//
//	output, err := release.Build(t, folder, []string{"celset-scheduler"})
package release

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/tool"
)

// Of all releases that tests make.
const (
	Version  = "v0.0.0-test"
	Registry = "registry.example.com/celset"
)

// Build makes the files of a release in a folder, with the images of some programs, for the platform
// of this machine only: all take minutes. Flags are further ones of the program in hack/tools/release.
// It returns what that printed.
func Build(t testing.TB, folder string, programs []string, flags ...string) (output string, err error) {
	t.Helper()
	program, err := tool.Build("release")
	require.NoError(t, err)
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	platform := "linux/" + runtime.GOARCH
	command := exec.CommandContext(t.Context(), program, append([]string{
		"build", "--version=" + Version, "--registry=" + Registry, "--time=1750000000", "--output=" + folder,
		"--programs=" + strings.Join(programs, ","), "--platforms=" + platform, "--plugin-platforms=" + platform,
	}, flags...)...)
	command.Dir = root
	printed, err := command.CombinedOutput()
	return string(printed), err
}
