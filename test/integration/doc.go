// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests celset-scheduler against etcd, kube-apiserver, kube-controller-manager and kwok as child processes
// (see test/controlplane). All tests of a run share one control plane and one scheduler, with the configuration and the RBAC
// rules in manifests. Each test has its own namespace, nodes, drivers and classes.
//
// Tests of functions that our plugin takes over from upstream's run in three variants: a pod without a constraint in the stock
// profile, a pod with a constraint in our profile, and a pod without a constraint in a profile that uses our allocator for all
// pods. The packages in subfolders have their own control planes.
//
//	go test ./test/integration/...
//
// The first run builds the control plane, which takes minutes. After a failure the last line of the output names the directory
// of the logs.
package integration
