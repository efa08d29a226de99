// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration has no code of its own. Its tests run celset-scheduler
// against a real control plane: etcd, kube-apiserver, kube-controller-manager and
// kwok, all of them child processes (see internal/controlplane).
//
// One control plane and one scheduler, with the configuration and under the RBAC
// rules that are in manifests, serve all tests of a run. To the configuration
// profiles are added that differ in plugin arguments. What a test works with is its
// own: a namespace, nodes with devices of drivers that nobody else has, and device
// classes for these. A test that wants more than the API server can tell runs a
// scheduler of its own.
//
// Tests of what upstream's plugin does besides allocating run in three variants:
// a pod without constraint in the stock profile, one with a constraint in ours, and
// one without in a profile where our allocator serves all pods.
//
// Package gangs has a control plane with the gate of PodGroups, twoschedulers one with two
// schedulers. Package placement below this one does for celset-placement what this one does for
// the scheduler, on a control plane of its own.
//
//	go test ./test/integration/...
//
// The first run builds the control plane, which takes minutes. When a test fails
// the components' logs are kept; the last line of the output says where.
package integration
