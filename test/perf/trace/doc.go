// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace replays claims that come and go against the allocator, and counts what becomes of
// them by who chooses nodes and sets of devices: the first that fit, NVIDIA's best-effort policy, or
// KeepWhole.
//
//	make trace > new.txt
//	benchstat -col /policy new.txt
//
// Time is simulated. What is counted depends on seeds alone, not on the machine that it runs on, so
// that each row needs one run.
//
// Nodes of one kind are alike, and what is chosen on one depends only on the devices that are free
// there: it is asked for once for each such set of devices and each size of claims.
package trace
