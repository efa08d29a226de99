// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package twoschedulers has no code of its own. Its tests check docs/two-schedulers.md. They run kube-scheduler and
// celset-scheduler on one control plane, with leader election as in a cluster. celset-scheduler has the flags, configuration and
// rights of the overlays in manifests/.
//
// Nodes are static and pods never run: a pod is served when it is bound and its claims are allocated.
package twoschedulers
