// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart has no code of its own. Its tests install the Helm chart with helm into a control
// plane, and run the pods that come of it: what programs run with is what the API server has of
// their pods, and who waits for them is helm.
//
//	go test ./test/chart
//
// The pods run as package podprocess says, which takes Linux and root. There are no images, no
// cert-manager and no Prometheus.
package chart
