// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a local Kubernetes control plane for tests and
// demos: etcd, kube-apiserver, kube-controller-manager and kwok as child
// processes on 127.0.0.1, and any number of schedulers beside them. All of
// them are the real programs, built from the modules that go.mod pins; nothing
// but a Go toolchain has to be installed.
//
// A test starts what it needs and stops it again:
//
//	cp, err := controlplane.Start(t.Context(), controlplane.Options{
//		DataDir:  t.TempDir(),
//		Progress: t.Output(),
//	})
//	require.NoError(t, err)
//	defer cp.Stop()
//
//	scheduler, err := cp.StartScheduler(t.Context(), controlplane.SchedulerOptions{
//		ConfigFile:   "testdata/scheduler.yaml",
//		FeatureGates: map[string]bool{"DRACELDeviceConstraint": true},
//	})
//	require.NoError(t, err)
//	names, err := controlplane.CreateNodes(t.Context(), cp.Client(), 3, controlplane.NodeOptions{})
//
// # Life cycle
//
// The context given to [Start] governs the life of the control plane, not only
// its start: when it ends, everything is stopped as if by [ControlPlane.Stop].
// How long a component may take until it is ready is limited by
// [Options.ReadyTimeout] and by the context. A component that ends before it is
// ready fails the start at once; the error carries the last lines of its log.
//
// Children run in process groups of their own. On Linux the kernel kills them
// when the process that started them dies, however it dies; on other systems a
// parent that is killed hard leaves them behind. Windows is not supported.
//
// # What differs from a production cluster
//
//   - etcd does not sync to disk, speaks plain HTTP on the loopback interface and
//     asks for no credentials: anybody with an account on the machine can read it.
//   - Users are those of a static token file: an administrator in system:masters
//     and [Options.Users]. Authorization is RBAC, as elsewhere.
//   - Only the controllers in [DefaultControllers] run. There is no node lifecycle
//     controller, so the admission plugin that taints new nodes until it has seen
//     them is off as well.
//   - Pods run in name only: kwok reports them as Running.
package controlplane
