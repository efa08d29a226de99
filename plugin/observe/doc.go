// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe reports about devices, beyond the statuses of pods: how many sets of devices still fit
// ([NewFragmentationMonitor]), which amounts in ResourceSlices are out of range ([LimitQuantities]), and the nearest miss for a
// pod ([NearMisses]). It takes no scheduling decisions.
package observe
