// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build never

// Package staging imports those parts of Kubernetes that no other package in this module imports.
//
// k8s.io/kubernetes requires its own parts at version v0.0.0, which does not exist. The imports here make go.mod require the
// parts at the right versions. So this module needs no replace directives, and neither do modules that require it. The package
// is never compiled.
package staging

import (
	_ "k8s.io/cluster-bootstrap/token/api"
	_ "k8s.io/cri-api/pkg/apis"
	_ "k8s.io/cri-client/pkg/util"
	_ "k8s.io/cri-streaming/pkg/streaming"
	_ "k8s.io/endpointslice/util"
	_ "k8s.io/externaljwt/apis/v1"
	_ "k8s.io/kube-aggregator/pkg/apis/apiregistration"
	_ "k8s.io/kube-controller-manager/config/v1alpha1"
	_ "k8s.io/kube-proxy/config/v1alpha1"
	_ "k8s.io/kubectl/pkg/util/hash"
	_ "k8s.io/metrics/pkg/apis/metrics"
	_ "k8s.io/mount-utils"
	_ "k8s.io/pod-security-admission/api"
	_ "k8s.io/sample-apiserver/pkg/apis/wardle"
)
