// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redteam tests a guarantee of the documentation about objects of a user with rights in one namespace. They never delay
// the pods and Placements of others by more than a second. They never raise the memory of a program by more than 64 MiB beyond
// its caches, and never end a program.
//
// The programs run as processes on a real control plane, with the configuration and the rights in manifests. The user mallory
// writes all cases of package test/internal/redteam, and may have pods without priority evicted. The user alice does harmless
// things; her delays are compared with the delays without mallory.
//
// TestOthersAreServed runs with every change: no program may end, and alice must get everything. TestGuarantee measures, so
// nothing else may run meanwhile:
//
//	make test-guarantee                           # all, in batches
//	CELSET_REDTEAM=long go test ./test/redteam    # all, one by one
//	CELSET_REDTEAM=double go test ./test/redteam  # only cases with this text in their names
//
// A batch that exceeds a limit is compared with as many harmless objects, and then split in halves to find the case.
package redteam
