// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak runs celset-scheduler for any duration with a real API server, while pods with and without CEL device
// constraints come and go.
//
//	make soak                 # 30 minutes on 1,000 nodes
//	make soak SOAK=4h
//	make soak-preemption      # 30 minutes on 200 nodes, with priorities
//	go test ./test/soak       # a few seconds on a few nodes, to test the test
//
// A ledger reads every version of every claim, and checks that no device has two owners and that each set satisfies its claim.
// The tests log goroutines, heap and latencies; docs/performance.md summarizes them. The test of preemption kills schedulers
// and the API server repeatedly, and delays the deallocation of claims. It compares the evictions in the schedulers' logs with
// the pods: the scheduler must not evict more pods for a pod than one set of devices requires. The environment variables
// CELSET_SOAK_NODES, CELSET_SOAK_KILLS and CELSET_SOAK_STOPS change the numbers of nodes, of killed schedulers and of killed
// API servers.
package soak
