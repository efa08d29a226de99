// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests celset-scheduler against etcd, kube-apiserver, kube-controller-manager and kwok as child processes
// (see test/controlplane). All tests of a run share one control plane and one scheduler, with the configuration and the RBAC
// rules in manifests. Each test has its own namespace, nodes, drivers and classes.
//
// Tests of upstream's plugin beyond allocation run in three variants: a pod without constraint in the stock profile, a pod with a
// constraint in ours, and a pod without one in a profile that uses our allocator for all pods. The packages below this one have
// their own control planes.
//
//	go test ./test/integration/...
//
// The first run builds the control plane, which takes minutes. After a failure the last line of the output names the directory of
// the logs.
package integration
