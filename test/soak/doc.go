// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak lets celset-scheduler work for as long as one likes: pods with and
// without CEL device constraints come and go on many nodes, for both profiles of one
// scheduler process, in front of a real API server.
//
//	make soak                 # 30 minutes on 1,000 nodes
//	make soak SOAK=4h
//	make soak-preemption      # 30 minutes on 200 nodes, with priorities
//	go test ./test/soak       # a few seconds on a few nodes, to test the test
//
// A ledger reads every version of every claim and finds out whether a device ever had
// two owners, or a set of devices was not what its claim asks for. The scheduler's
// goroutines and its heap after a garbage collection are sampled each minute, and the
// time from creating a pod to its node is summed up for parts of the run. What was seen
// is written to a log, which docs/performance.md sums up.
//
// With preemption, pods of three priorities want more devices than there are, and one scheduler after the
// other is killed. Whom a scheduler had evicted for whom is read from its log, and compared with what
// became of the pods.
package soak
