// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version tells which version of celset a program is. The scheduler does not say it
// with --version, where a kube-scheduler says that of Kubernetes.
package version

import "runtime/debug"

// unknown is what the go command calls the version of a module that it does not know.
const unknown = "(devel)"

// released is the version of a release. The linker sets it: what the go command finds out by itself
// depends on how the source was fetched.
var released string

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
