// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managed runs the servers of package serving in a controller-runtime manager.
package managed

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/internal/serving"
)

const shutdownTime = 10 * time.Second

// NewServer returns a server for a manager. It runs until the context passed to its Start ends. The contexts of requests end
// when ctx ends.
func NewServer(ctx context.Context, name string, listener net.Listener, handler http.Handler) *manager.Server {
	return &manager.Server{Name: name, Listener: listener, Server: serving.New(ctx, handler), ShutdownTimeout: ptr.To(shutdownTime)}
}

// Certificate returns a TLS configuration with a certificate from files. While the returned watcher runs, it reads the files
// again when they change.
func Certificate(certificate, key string) (*tls.Config, *certwatcher.CertWatcher, error) {
	watcher, err := certwatcher.New(certificate, key)
	if err != nil {
		return nil, nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: watcher.GetCertificate}, watcher, nil
}
