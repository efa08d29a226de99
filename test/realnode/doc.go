// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realnode adds a node that runs containers to the control plane of package controlplane. kubelet, containerd and runc
// are child processes, built from the modules that go.mod and hack/tools pin, with CDI and without Docker. The node needs Linux
// and root; [Unavailable] reports what is missing.
//
//	node, err := realnode.Start(ctx, cp, realnode.Options{})
//	if err != nil { ... }
//	defer node.Stop()
//
// A DRA driver for the node needs [Node.KubeletDir], [Node.CDIDir] and [Node.Name]. Pods use [Image] and must be changed by
// [Adapt].
//
// # What is left when it ends
//
// Only logs and files in the node's directory are left. All processes of the node run in a mount namespace and a PID namespace
// of their own. The first process of the PID namespace is nodeinit. When nodeinit ends, the kernel kills the others and removes
// their mounts, even if this process is killed and can't clean up. Only cgroups would be left then, below one cgroup that is
// named after the node's directory. Stop removes them. If Stop was not called, the next Start in the same directory does.
// [Leftovers] looks for all of these remains.
//
// # What differs from a production node
//
//   - It has no network but the host's: pods use hostNetwork.
//   - It never pulls images: it has [Image], for sandboxes and containers, and imported images ([Node.ImportImages]).
//   - Seccomp filters are not applied (see ociruntime).
//   - The kubelet is an administrator of the cluster. It listens on the loopback interface and admits only the API server.
//   - It evicts no pods and enforces no limit on all pods together.
package realnode
