// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podprocess runs the pods of a control plane whose images are programs of this module,
// for tests of what is installed in a cluster: what the API server has of a pod is what its
// program runs with.
//
//	runner, err := podprocess.Start(ctx, controlPlane, podprocess.Options{Nodes: []string{"node-0"}})
//	require.NoError(t, err)
//	defer runner.Stop()
//
// It does what the kubelet, the container runtime and kube-proxy do, as far as these pods need it.
// The program runs in runc, with the arguments, the environment, the user, the limit of memory and the read-only file
// system of its container; with ConfigMaps, Secrets and a token of the pod's ServiceAccount as
// files; and with a network of its own, in which it finds the API server as every pod does, and has
// the ports that it asks for. Probes decide whether it is ready, and end it; the status of the
// pod says so, so that Deployments go on. Pods that are deleted are asked to end, and given their time. Who
// asks for a Service reaches a pod that is ready. DRA drivers are registered, and not asked to
// prepare anything.
//
// What a pod asks for and this package does not know is an error, not left out.
//
// # What differs from a cluster
//
//   - The root file system has the program, and the libraries of this machine in place of those of
//     the image. There is no seccomp filter.
//   - Pods don't reach each other. The address of the API server is that of the loopback
//     interface, because that is what its certificate is for.
//   - Services are reached at their addresses if those are of the loopback interface: have the API
//     server choose such, by the flag in [ServiceAddresses].
//   - ConfigMaps and Secrets that change are not written again.
//   - Probes are called ten times as often as a pod says, and may take and fail ten times as long:
//     the machines of tests are busy.
//
// It needs Linux and root: see [Unavailable].
package podprocess
