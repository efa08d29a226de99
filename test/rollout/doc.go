// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout has no code of its own. Its tests roll celset-scheduler out and
// back in a real control plane: they kill it at each of its writes, turn the feature
// off and on again under running pods, put another process in its place while claims
// are in flight, and go back to the stock scheduler.
//
// Every scheduler process talks to the API server through a gate (gate_test.go), which
// sees its writes, and stops at the one that a test has chosen. A ledger
// reads each version of each claim, and a workload
// (workload_test.go) knows which of its pods have to have which devices.
//
// TestFaults, which "make faults" runs, has two schedulers and the controller manager work
// while network, API server, etcd and they themselves fail (faults_test.go), without the
// guard against double allocation and with it (faults_guard_test.go). Between a gate
// and the API server, package faults breaks requests and package history records what they
// did to claims.
//
//	go test ./test/rollout/...                     # 20 kills
//	CELSET_NIGHTLY=4711 go test ./test/rollout/... # 200
//
// When a test fails the components' logs are kept; the last line of the output says
// where.
package rollout
