// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gangs has no code of its own. Its tests schedule gangs of pods, the PodGroups of
// Kubernetes, whose claims have CEL device constraints: all pods of a gang are bound or none is, and
// what was found for some of them is given back when others find nothing.
//
// It has a control plane of its own, because the gate GenericWorkload is off by default in Kubernetes
// 1.37. Nodes are static and nobody runs pods: a pod is served when it is bound and its claims are
// allocated.
package gangs
