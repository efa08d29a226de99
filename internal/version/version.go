// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version returns the versions of celset and of Kubernetes in a program.
package version

import (
	"runtime/debug"
	"strings"
)

// unknown is the text that the go command records if it does not know the version of a module.
const unknown = "(devel)"

// released is the version of a release. The linker sets this variable, because the version that the go command records depends
// on how the source was fetched.
var released string

// revision is the commit of a release. The linker sets this variable.
var revision string

// Get returns the version of this module: the version of a release, or a pseudo-version with the time and the commit.
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

// kubernetes returns the version of Kubernetes, or "" if it is unknown. The libraries of Kubernetes v1.37.2 have the version
// v0.37.2.
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
