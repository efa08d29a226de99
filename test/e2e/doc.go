// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e has no code of its own. Its tests end where a user's workload starts: in
// a container that reads from its environment which devices it has. The claims are
// those of manifests/examples; celset-scheduler allocates, celset-topology-driver
// prepares, and the kubelet, containerd and runc of package realnode run the
// container. Nodes of kwok stand beside it.
//
// TestChart has a node of its own, on which the images of a release run as pods of the released
// chart.
//
// What a container was told is compared with its claim's status, and what it was told
// of connections is judged by the topology, not by the constraint. A ledger reads each
// version of each claim, and the driver counts what it refuses.
//
//	make e2e
//
// They need Linux and root, and build kubelet and containerd, so they don't run as
// part of "go test ./...", but only if the environment variable CELSET_E2E is set. If
// they can't run then, they say why and are skipped; with CI=true that is a failure.
//
// The directory is always the same, so that a run finds and removes what a killed one
// has left. When a test fails, it is kept: the last line of the output says where.
package e2e
