// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe tells people about devices, beside the statuses of pods: how many sets of devices still fit ([FragmentationMonitor]),
// which amounts of ResourceSlices are out of range ([LimitQuantities]), and by how little a pod misses a node
// ([NearMisses]). Nothing in this package decides where a pod goes.
package observe
