// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the devices that containers see. The claims come from manifests/examples. celset-scheduler allocates,
// celset-topology-driver prepares, and the kubelet, containerd and runc of package realnode run the container. TestChart runs
// the images of a release as pods of the chart.
//
// The tests compare the devices in a container with the claim's status, and check them against the topology. To find double
// allocations, a ledger reads each version of each claim, and the driver counts the devices that it refuses.
//
//	make e2e
//
// The tests need Linux, root and the environment variable CELSET_E2E; otherwise they are skipped, or fail with CI=true. After a
// failure the last line of the output names the directory of the logs.
package e2e
