// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redteam has no code of its own. Its test holds what the documentation promises:
// nothing that a user with rights in one namespace can create delays the pods and
// Placements of others by more than a second, raises the memory of a program by more than
// 64 MiB beyond its caches, or ends it.
//
// The scheduler, the webhook and the placement controller with its debug address run as
// processes on a real control plane, with the configuration and the rights in manifests.
// Devices are preempted for pods of a higher priority (the gate DRADevicePreemption is on), and mallory may use one: of some
// nodes pods of no priority have all devices.
// Somebody called mallory writes everything that package internal/testing/redteam collects;
// somebody called alice does harmless things all the time, one after the other, and notes
// how long each takes. What that was without mallory is measured first.
//
// Before a change lands, TestOthersAreServed fires the same and counts: no program has ended, and alice
// got everything. TestGuarantee measures delays and memory, so nothing else may run meanwhile: it
// is skipped unless it is asked for.
//
//	make test-guarantee                           # all, in batches
//	CELSET_REDTEAM=long go test ./test/redteam    # all, one by one
//	CELSET_REDTEAM=double go test ./test/redteam  # only cases whose names have that in them
//
// A batch that is too much is compared with as many harmless objects, written in the same way
// at the next moment: what those delay is the API server's time, or that of a machine that is
// busy. If it still is too much, it is tried again in halves, to name the case that is.
package redteam
