// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"path/filepath"
	"time"
)

// startEtcd starts etcd, which stores the API server's objects.
func (cp *ControlPlane) startEtcd(ctx context.Context) error {
	return cp.supervisor.start(ctx, cp.etcdCommand(), etcdProbe)
}

func etcdProbe(p *Process) func(context.Context) error { return p.probePath("/readyz") }

func (cp *ControlPlane) etcdCommand() command {
	return command{
		name:   Etcd,
		binary: filepath.Join(cp.binDir, Etcd),
		args: []string{
			"--name=default",
			"--data-dir=" + filepath.Join(cp.dir, "etcd"),
			"--listen-client-urls=" + cp.etcdURL,
			"--advertise-client-urls=" + cp.etcdURL,
			"--listen-peer-urls=" + cp.etcdPeerURL,
			"--initial-advertise-peer-urls=" + cp.etcdPeerURL,
			"--initial-cluster=default=" + cp.etcdPeerURL,
			// The data must survive a crash of etcd, but not of the machine. For that, the page cache of the operating system suffices.
			"--unsafe-no-fsync",
			// This is etcd's maximum size. Tests that kill the API server repeatedly need it, because a killed API server does
			// not compact etcd.
			"--quota-backend-bytes=8589934592",
		},
		endpoint: cp.etcdURL,
		client:   cp.plainClient,
		grace:    5 * time.Second,
	}
}
