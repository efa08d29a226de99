// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler_perf measures a whole scheduler with Kubernetes' benchmark scheduler_perf.
//
//	go test ./test/perf/scheduler_perf     # workloads labelled "short", for correctness
//	make perf PERF_RESULTS=new.txt         # those labelled "performance", for benchstat
//
// performance-config.yaml runs the same pods in three forms: with CEL constraints in our profile, and with only a count or with
// matchAttribute for upstream's allocator. Upstream's own DRA workloads, from the module in go.mod, run with upstream's plugin,
// and with our plugin and "allocator: All". keepwhole-config.yaml runs with and without a default preference.
// preemption-config.yaml measures the eviction of pods for devices. Upstream's preemption workloads run with upstream's plugin
// and with ours.
//
// Workloads that are compared run directly one after the other, so that other load of the machine affects all of them.
// scheduler_perf can't create allocated claims; so the function [occupy] creates them when the nodes exist.
package scheduler_perf
