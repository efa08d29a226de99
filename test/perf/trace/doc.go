// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace replays claims that come and go against the allocator, and counts what becomes of
// them by who chooses nodes and sets of devices: the first that fit, any, NVIDIA's best-effort
// policy, or celset's preferences.
//
//	make trace              # an hour's fraction; results go to docs/performance/trace.json
//	make trace-scheduler    # the same on a control plane with our scheduler, beside the others
//	make perf-report        # the page, from these
//
// A trace depends on a seed, time is simulated, and what is counted does not depend on the machine
// that it runs on: tests pin it. Times of decisions are measured separately, see [Measure].
//
// Nodes of one kind are alike, so that what the allocator chooses on one depends only on the devices
// that are free there. It is asked once for each such set of devices and each size of claims; a test
// compares with a replay in which it is asked each time, for all nodes.
//
// What stands for kube-scheduler is compared with one: smaller traces are replayed on a control plane,
// where claims and pods are created and deleted in the order of the trace, and what waits does so in the
// scheduler's queue. After each event the scheduler is waited for until nothing is left to be done, so
// that here, too, how fast it is does not matter.
package trace
