// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chart has no code of its own. Its tests install, upgrade and uninstall the Helm chart in a control plane. Controllers
// create the pods, and the API server admits them at the level "restricted". The pods never run.
//
//	go test ./test/chart
//
// The package test/e2e runs the pods on a node. The RBAC rights of the programs are tested by tests that run the programs with
// them: test/integration, test/integration/twoschedulers, test/cmd/celset-placement and test/cmd/celset-webhook. The package
// test/manifests compares these rights with the chart's rights. cert-manager and Prometheus are not installed.
package chart
