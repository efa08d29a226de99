// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler_perf measures a whole scheduler with scheduler_perf, the benchmark of Kubernetes.
//
//	go test ./test/perf/scheduler_perf     # workloads labelled "short", for correctness
//	make perf PERF_RESULTS=new.txt         # those labelled "performance", for benchstat
//
// In performance-config.yaml, the same pods come with CEL constraints for our profile, and with only a
// count or with matchAttribute for upstream's allocator. Upstream's own DRA workloads, from the module
// that go.mod names, run as they are and through our plugin with "allocator: All". The workloads of
// keepwhole-config.yaml run with and without a preference for all claims. In preemption-config.yaml, pods
// are evicted for devices, and upstream's preemption workloads run in pairs.
//
// Workloads that are compared run one after the other, so that a busy machine slows all of them down.
// scheduler_perf can't create allocated claims: a function that it calls when the nodes are there makes
// them ([occupy]).
package scheduler_perf
