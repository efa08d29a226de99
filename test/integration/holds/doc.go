// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package holds tests preemption for devices. When the scheduler evicts pods (victims) for another pod (the preemptor), it
// holds the devices of the victims until the preemptor is bound. No other pod may get them. It has its own control plane: the
// tests pause the controller of claims, kill schedulers, and end evicted pods themselves, because the nodes have no kubelets.
package holds
