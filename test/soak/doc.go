// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak runs celset-scheduler for any duration with a real API server, while pods with and without CEL device constraints
// come and go.
//
//	make soak                 # 30 minutes on 1,000 nodes
//	make soak SOAK=4h
//	make soak-preemption      # 30 minutes on 200 nodes, with priorities
//	go test ./test/soak       # a few seconds on a few nodes, to test the test
//
// A ledger reads every version of every claim: no device has two owners, and each set satisfies its claim. Goroutines, heap and
// latencies are logged; docs/performance.md summarizes them. With preemption, schedulers and the API server are killed
// repeatedly, and claims are freed late. The evictions in the schedulers' logs are compared with the fates of the pods: a pod
// must not evict more pods than one set of devices needs. The environment variables CELSET_SOAK_NODES, CELSET_SOAK_KILLS and
// CELSET_SOAK_STOPS change the numbers of nodes, of killed schedulers and of killed API servers.
package soak
