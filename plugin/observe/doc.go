// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe explains the cluster's devices to people. It counts how many sets of devices are still free
// ([NewFragmentationMonitor]), reports amounts in ResourceSlices that are out of range ([LimitQuantities]), and describes the
// nearest miss of a pod that fits nowhere ([NearMisses]). It takes no scheduling decisions.
package observe
