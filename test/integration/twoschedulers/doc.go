// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package twoschedulers has no code of its own. Its tests check docs/two-schedulers.md. They run kube-scheduler and
// celset-scheduler on one control plane, with leader election as in a cluster. celset-scheduler has the flags, configuration
// and rights of the overlays in manifests/.
//
// There are no kubelets, so pods never run. A test waits until pods are bound and their claims are allocated.
package twoschedulers
