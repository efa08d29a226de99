// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane runs a local Kubernetes control plane for tests and demos. etcd, kube-apiserver, kube-controller-manager
// and kwok are child processes on 127.0.0.1. Any number of schedulers can run beside them. All are the real programs, built
// from the modules that go.mod pins. Only a Go toolchain must be installed.
//
// A test starts a control plane and stops it again:
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
// The control plane lives as long as the context of [Start]. When the context ends, all processes are stopped as by
// [ControlPlane.Stop]. [Options.ReadyTimeout] limits the time until a component is ready. If a component ends before it is
// ready, the start fails at once, and the error contains the last lines of the component's log.
//
// Children run in their own process groups. On Linux the kernel kills them when the process that started them dies, for any
// reason. On other systems, a parent that is killed by SIGKILL leaves its children running. Windows is not supported.
//
// # What differs from a production cluster
//
//   - etcd does not sync to disk, serves plain HTTP on the loopback interface and needs no credentials: every local user can read
//     it.
//   - Users come from a static token file: an administrator in system:masters, and [Options.Users]. Authorization is RBAC.
//   - Only the controllers in [DefaultControllers] run. Because the node lifecycle controller is missing, the admission plugin
//     that taints new nodes is off as well.
//   - Pods run no containers: kwok reports them as Running.
package controlplane
