// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package holds evicts pods for devices, and tests that the devices stay held until the preemptor is bound. It has its own
// control plane: the tests pause the controller of claims, kill schedulers, and end evicted pods themselves, because the nodes
// have no kubelets.
package holds
