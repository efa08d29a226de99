// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build never

package controlplane

// k8s.io/kubernetes requires its own parts at v0.0.0, a version that does not exist. This module requires all of them at the version
// that belongs to it, so that neither it nor a module that requires it has to replace them. Of this one nothing is used.
import _ "k8s.io/sample-apiserver/pkg/apis/wardle"
