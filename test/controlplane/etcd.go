// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"path/filepath"
	"time"
)

// startEtcd starts the store of the API server.
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
			// Data must survive the end of the process only; the page cache suffices for that.
			"--unsafe-no-fsync",
			// This is etcd's maximum: an API server that is killed repeatedly does not compact etcd.
			"--quota-backend-bytes=8589934592",
		},
		endpoint: cp.etcdURL,
		client:   cp.plainClient,
		grace:    5 * time.Second,
	}
}
