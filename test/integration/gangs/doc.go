// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gangs schedules gangs of pods (Kubernetes' PodGroups) whose claims have CEL device constraints: all pods of a gang are
// bound, or none is. It has its own control plane, because the gate GenericWorkload is off by default in Kubernetes 1.37.
package gangs
