// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gangs schedules gangs of pods, the PodGroups of Kubernetes, whose claims have CEL device
// constraints: all pods of a gang are bound or none is. It has a control plane of its own, because the
// gate GenericWorkload is off by default in Kubernetes 1.37.
package gangs
