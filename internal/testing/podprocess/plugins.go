// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// registry is where plugins of a kubelet say that they are there.
const registry = "/var/lib/kubelet/plugins_registry"

// registerPlugins tells the DRA drivers of a node that have come that the kubelet knows them.
func (r *Runner) registerPlugins(ctx context.Context, node string) error {
	dir := filepath.Join(r.nodeDir(node), registry)
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	present := map[string]bool{}
	for _, entry := range entries {
		socket := filepath.Join(dir, entry.Name())
		present[socket] = true
		if r.plugins[socket] {
			continue
		}
		// It may not listen yet, or any more.
		if err := register(ctx, dir, entry.Name()); err == nil {
			r.plugins[socket] = true
		}
	}
	for socket := range r.plugins {
		if filepath.Dir(socket) == dir && !present[socket] {
			delete(r.plugins, socket)
		}
	}
	return nil
}

func register(ctx context.Context, dir, name string) error {
	ctx, cancel := context.WithTimeout(ctx, slack*time.Second)
	defer cancel()
	// The path of the socket may be longer than those of sockets may be.
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	connection, err := grpc.NewClient("passthrough:///plugin", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), name))
		}))
	if err != nil {
		return err
	}
	defer connection.Close()
	plugin := registerapi.NewRegistrationClient(connection)
	info, err := plugin.GetInfo(ctx, &registerapi.InfoRequest{})
	if err != nil {
		return err
	}
	if info.Type != registerapi.DRAPlugin {
		return fmt.Errorf("plugin %s is a %s: only DRA drivers are known", info.Name, info.Type)
	}
	_, err = plugin.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: true})
	return err
}
