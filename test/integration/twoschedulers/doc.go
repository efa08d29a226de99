// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package twoschedulers has no code of its own. Its tests show what docs/two-schedulers.md
// says: on one control plane they run the stock kube-scheduler and celset-scheduler, both
// as in a cluster: with leader election, the latter with the flags, with the configuration
// and under the rights that the overlays in manifests/ render.
//
// Nodes are static and nobody runs pods: a pod is served when it is bound and its
// claims are allocated.
package twoschedulers
