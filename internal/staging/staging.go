// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build never

// Package staging imports each part of Kubernetes that nothing else in this module imports.
//
// k8s.io/kubernetes requires its own parts at v0.0.0, a version that does not exist. These imports keep the right versions of the
// parts in go.mod. So neither this module nor a module that requires it needs replace directives. The package is never compiled.
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
