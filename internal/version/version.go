// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version provides the versions of celset and Kubernetes that a program was built from.
package version

import (
	"runtime/debug"
	"strings"
)

// unknown is the go command's text for an unknown version of a module.
const unknown = "(devel)"

// released is the version of a release. The linker sets it, because the go command's own result depends on how the source was
// fetched.
var released string

// revision is the commit of a release. The linker sets it.
var revision string

// Get returns the version of this module in the program: a release, or a pseudo-version with time and commit.
func Get() string {
	if released != "" {
		return released
	}
	return of(debug.ReadBuildInfo())
}

func of(info *debug.BuildInfo, ok bool) string {
	if !ok || info.Main.Version == "" {
		return unknown
	}
	return info.Main.Version
}

// Text returns the output of --version: the versions of celset and of the Kubernetes libraries.
func Text() string { return text(Get(), kubernetes(debug.ReadBuildInfo())) }

func text(celset, kubernetes string) string {
	if kubernetes == "" {
		return celset
	}
	return celset + " (Kubernetes " + kubernetes + ")"
}

// kubernetes returns the version of Kubernetes, or "" if it is unknown. Kubernetes v1.37.2 has libraries of version v0.37.2.
func kubernetes(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if minor, found := strings.CutPrefix(module.Version, "v0."); found && module.Path == "k8s.io/client-go" {
			return "v1." + minor
		}
	}
	return ""
}
