// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redteam tests what the documentation promises: nothing that a user with rights in one namespace
// can create delays the pods and Placements of others by more than a second, raises the memory of a
// program by more than 64 MiB beyond its caches, or ends it.
//
// The programs run as processes on a real control plane, with the configuration and the rights in
// manifests. A user called mallory writes everything that package test/internal/redteam collects, and
// may have pods without priority evicted; alice does harmless things, and her delays are compared with
// those without mallory.
//
// TestOthersAreServed counts before a change lands: no program has ended, and alice got everything.
// TestGuarantee measures, so nothing else may run meanwhile:
//
//	make test-guarantee                           # all, in batches
//	CELSET_REDTEAM=long go test ./test/redteam    # all, one by one
//	CELSET_REDTEAM=double go test ./test/redteam  # only cases whose names have that in them
//
// A batch that takes too much is compared with as many harmless objects, and then tried in halves to
// find the case.
package redteam
