// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler_perf measures a whole scheduler with scheduler_perf, the benchmark of
// Kubernetes: API server, scheduler and controllers run in the process of the test, etcd
// beside it.
//
//	go test ./test/perf/scheduler_perf     # workloads labelled "short", for correctness
//	make perf PERF_RESULTS=new.txt         # those labelled "performance", for benchstat
//
// performance-config.yaml has the workloads in scheduler_perf's format. The same pods come
// with CEL constraints for our profile, and with only a count or with matchAttribute for
// upstream's allocator; both profiles are those of manifests/scheduler/config.yaml. The workloads of
// upstream's own DRA benchmarks are read from the module that go.mod names, and run
// twice: as they are, and through our plugin with "allocator: All".
//
// The workloads of keepwhole-config.yaml run once for each of several configurations of the scheduler, with
// and without a preference for all claims.
//
// Those of preemption-config.yaml have pods evicted for others, for devices. Upstream's preemption workloads,
// which know no devices, run in pairs as its DRA workloads do.
//
// What workloads that are compared have in common stands together, and they run one after
// the other, so that a machine that is busy with something else is to both of them.
//
// scheduler_perf can't create claims that are allocated. Devices, and the claims that
// have them when a workload begins, are made by a function that it calls when the nodes
// are there ([occupy]); the parameters say how many.
package scheduler_perf
