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
	ports, err := FreePorts(2)
	if err != nil {
		return err
	}
	cp.etcdURL = "http://" + address(ports[0])
	peerURL := "http://" + address(ports[1])
	return cp.supervisor.start(ctx, command{
		name:   Etcd,
		binary: filepath.Join(cp.binDir, Etcd),
		args: []string{
			"--name=default",
			"--data-dir=" + filepath.Join(cp.dir, "etcd"),
			"--listen-client-urls=" + cp.etcdURL,
			"--advertise-client-urls=" + cp.etcdURL,
			"--listen-peer-urls=" + peerURL,
			"--initial-advertise-peer-urls=" + peerURL,
			"--initial-cluster=default=" + peerURL,
			// Surviving the end of the process is enough; the page cache does.
			"--unsafe-no-fsync",
		},
		endpoint: cp.etcdURL,
		client:   cp.plainClient,
		grace:    5 * time.Second,
	}, func(p *Process) func(context.Context) error { return p.probePath("/readyz") })
}
