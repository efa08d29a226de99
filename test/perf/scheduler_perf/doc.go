// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler_perf measures a whole scheduler with Kubernetes' benchmark scheduler_perf.
//
//	go test ./test/perf/scheduler_perf     # workloads labelled "short", for correctness
//	make perf PERF_RESULTS=new.txt         # those labelled "performance", for benchstat
//
// performance-config.yaml runs the same pods with CEL constraints for our profile, and with only a count or with matchAttribute
// for upstream's allocator. Upstream's own DRA workloads, from the module in go.mod, run unchanged and through our plugin with
// "allocator: All". keepwhole-config.yaml runs with and without a preference for all claims. preemption-config.yaml evicts pods
// for devices. Upstream's preemption workloads run twice, with upstream's plugin and with ours.
//
// Compared workloads run one after the other, so that a busy machine slows all of them down. scheduler_perf can't create
// allocated claims; a callback creates them when the nodes exist ([occupy]).
package scheduler_perf
