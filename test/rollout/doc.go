// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout tests upgrades and rollbacks of celset-scheduler with a real control plane. The tests kill the scheduler at
// each of its writes, turn the feature gate off and on while pods run, and replace celset-scheduler by kube-scheduler.
//
// Every scheduler connects to the API server through a gate (gate_test.go), a proxy that can stop a chosen write. A ledger
// reads each version of each claim to find double allocations. A workload (workload_test.go) knows which pods must get devices.
// TestFaults, which "make faults" runs, applies faults to the network, the API server, etcd, two schedulers and the controller
// manager.
//
//	go test ./test/rollout/...                     # 20 kills
//	CELSET_NIGHTLY=4711 go test ./test/rollout/... # 200
//
// After a failure the last line of the output names the directory of the logs.
package rollout
