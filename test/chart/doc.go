// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart has no code of its own. Its tests install the Helm chart with helm into a control
// plane, upgrade it and take it away. Controllers make the pods, which the API server admits at the
// restricted level; nobody runs them.
//
//	go test ./test/chart
//
// That the pods run is for test/e2e, which has a node. That they have the rights that they take is
// for the tests that run the programs under these: test/integration and its twoschedulers,
// test/cmd/celset-placement, test/cmd/celset-webhook, and test/manifests, which compares them with those of
// the chart. There are no cert-manager and no Prometheus.
package chart
