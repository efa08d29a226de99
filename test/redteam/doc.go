// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redteam tests a guarantee in the documentation. A user with rights in one namespace can't delay the pods and
// Placements of other users by more than a second. The user can't increase the memory of a program by more than 64 MiB in
// addition to its caches, and can't crash a program.
//
// The programs run as processes on a real control plane, with the configuration and the rights in manifests. The user mallory
// attacks: she writes all cases of package test/internal/redteam, and her pods may evict pods without priority. The user alice
// creates harmless pods and Placements. The test compares her delays with and without the attacks.
//
// TestOthersAreServed runs in "make test". It measures no time: no program may crash, and all of alice's pods and Placements
// must be served. TestGuarantee measures delays and memory, so nothing else may run on the machine:
//
//	make test-guarantee                           # all, in batches
//	CELSET_REDTEAM=long go test ./test/redteam    # all, one by one
//	CELSET_REDTEAM=double go test ./test/redteam  # only cases with this text in their names
//
// TestGuarantee writes cases in batches. If a batch exceeds a limit, the test compares it with a batch of harmless objects.
// Then it splits the batch in halves until it has found the case.
package redteam
