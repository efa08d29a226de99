// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests what containers see of their devices. The claims are those of manifests/examples;
// celset-scheduler allocates, celset-topology-driver prepares, and the kubelet, containerd and runc of
// package realnode run the container. TestChart runs the images of a release as pods of the chart.
//
// What a container was told is compared with its claim's status, and judged by the topology. A ledger
// reads each version of each claim, and the driver counts what it refuses.
//
//	make e2e
//
// The tests need Linux and root, and the environment variable CELSET_E2E. Where they can't run they are
// skipped; with CI=true that is a failure. After a failure the last line of the output says where the
// logs are.
package e2e
