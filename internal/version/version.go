// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version has the versions of celset and of Kubernetes that a program was built from.
package version

import (
	"runtime/debug"
	"strings"
)

// unknown is what the go command calls the version of a module that it does not know.
const unknown = "(devel)"

// released is the version of a release. The linker sets it: what the go command finds out by itself
// depends on how the source was fetched.
var released string

// revision is the commit of a release. The linker sets it, too.
var revision string

// Get returns the version of this module that the program was built from: a release, or one
// that has time and commit in it.
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

// Text is what programs print with --version: the version of celset, and that of Kubernetes whose libraries
// they have.
func Text() string { return text(Get(), kubernetes(debug.ReadBuildInfo())) }

func text(celset, kubernetes string) string {
	if kubernetes == "" {
		return celset
	}
	return celset + " (Kubernetes " + kubernetes + ")"
}

// kubernetes is empty if the program does not know. Kubernetes' libraries have the version v0.37.2 where
// Kubernetes has v1.37.2.
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
