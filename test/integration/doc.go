// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests celset-scheduler against etcd, kube-apiserver, kube-controller-manager and
// kwok as child processes (see test/controlplane). One control plane and one scheduler, with the
// configuration and the RBAC rules in manifests, serve all tests of a run; each test has its own
// namespace, nodes, drivers and classes.
//
// Tests of what upstream's plugin does besides allocating run in three variants: a pod without constraint
// in the stock profile, one with a constraint in ours, and one without in a profile where our allocator
// serves all pods. The packages below have control planes of their own.
//
//	go test ./test/integration/...
//
// The first run builds the control plane, which takes minutes. After a failure the last line of the
// output says where the logs are.
package integration
