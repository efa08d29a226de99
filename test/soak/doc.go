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
// preemption, schedulers and the API server are killed one after the other, claims are freed late, and what
// the logs of schedulers say of evictions is compared with what became of the pods: no more are evicted for
// a pod than one set of devices takes. The environment variables CELSET_SOAK_NODES, CELSET_SOAK_KILLS and
// CELSET_SOAK_STOPS have other numbers of nodes, of killed schedulers and of killed API servers.
package soak
