// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart has no code of its own. Its tests install, upgrade and uninstall the Helm chart in a control plane. Controllers
// create the pods, and the API server admits them at the level "restricted". The pods never run.
//
//	go test ./test/chart
//
// test/e2e has a node and runs the pods. The rights are tested where the programs run under them: in test/integration and its
// twoschedulers, test/cmd/celset-placement and test/cmd/celset-webhook. test/manifests compares these rights with the chart's.
// cert-manager and Prometheus are not installed.
package chart
