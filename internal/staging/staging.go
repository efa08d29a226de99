// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build never

// Package staging has an import of each part of Kubernetes that nothing else in this module imports.
//
// k8s.io/kubernetes requires its own parts at v0.0.0, a version that does not exist. The imports keep requirements of the
// right versions in go.mod, so that neither this module nor a module that requires it has to replace the parts. The
// package is never compiled.
package staging

import _ "k8s.io/sample-apiserver/pkg/apis/wardle"
