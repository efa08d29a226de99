// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout tests rolling celset-scheduler out and back in a real control plane. The scheduler is killed at each of its
// writes, the feature is turned off and on under running pods, and the stock scheduler takes its place.
//
// Every scheduler talks to the API server through a gate (gate_test.go), which stops at a chosen write. A ledger reads each
// version of each claim, and a workload (workload_test.go) tracks which of its pods must have which devices. TestFaults, which
// "make faults" runs, disturbs two schedulers and the controller manager by faults of the network, the API server, etcd and
// themselves.
//
//	go test ./test/rollout/...                     # 20 kills
//	CELSET_NIGHTLY=4711 go test ./test/rollout/... # 200
//
// After a failure the last line of the output names the directory of the logs.
package rollout
