// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realnode adds a node that runs containers to the control plane of package
// controlplane: kubelet, containerd and runc as child processes, built from the
// modules that go.mod and hack/tools pin, with CDI and without Docker. It needs
// Linux and root; [Unavailable] tells what is missing.
//
//	node, err := realnode.Start(ctx, cp, realnode.Options{})
//	if err != nil { ... }
//	defer node.Stop()
//
// A DRA driver for it gets [Node.KubeletDir], [Node.CDIDir] and [Node.Name]; pods
// use [Image], and need what [Adapt] gives them.
//
// # What is left when it ends
//
// Nothing but logs and files in the node's directory. The node's processes and all
// that they start are in a mount namespace and a PID namespace of their own, whose
// first process is nodeinit: if that ends, the kernel kills the others and takes
// their mounts apart, even if this process is killed and can't tidy up. What the
// kernel leaves is cgroups, all of them below one that is named after the node's
// directory: Stop removes them, or else the next Start in the same directory.
// [Leftovers] looks for all of it.
//
// # What differs from a production node
//
//   - It has no network but the host's: pods use hostNetwork.
//   - It never pulls images: it has [Image], for sandboxes and containers, and what
//     [Node.ImportImages] gives it.
//   - Seccomp filters are not applied (see ociruntime).
//   - The kubelet is an administrator of the cluster, listens on the loopback interface
//     only and lets the API server in, nobody else.
//   - It evicts no pods and enforces no limit on all pods together.
package realnode
