// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak lets celset-scheduler work for as long as one likes, in front of a real API server, while
// pods with and without CEL device constraints come and go.
//
//	make soak                 # 30 minutes on 1,000 nodes
//	make soak SOAK=4h
//	make soak-preemption      # 30 minutes on 200 nodes, with priorities
//	go test ./test/soak       # a few seconds on a few nodes, to test the test
//
// A ledger reads every version of every claim: no device has two owners, and each set is what its claim
// asks for. Goroutines, heap and latencies are written to a log, which docs/performance.md sums up. With
// preemption, schedulers are killed one after the other, and what their logs say of evictions is compared
// with what became of the pods.
package soak
