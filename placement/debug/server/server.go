// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/internal/serving"
	"github.com/celset/celset/internal/serving/managed"
	"github.com/celset/celset/placement/debug"
)

// Options configure the server.
type Options struct {
	// Address is the listen address, as in net.Listen.
	Address string
	// CertDir is the directory with the server's files tls.crt and tls.key. The server reads them again after a change. If CertDir
	// is empty, the server signs a certificate itself, which clients can't verify.
	CertDir string
	// Placements reads and decides Placements.
	Placements debug.Placements
	// All is set if the controller decides all Placements that are not disabled.
	All bool
}

// Names of the files in [Options.CertDir].
const (
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// Add adds the server to a manager. It runs in all replicas, not only in the leader.
func Add(mgr manager.Manager, options Options) error {
	authenticate, authorize, err := access(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("debugging of placement: %w", err)
	}
	handler, err := debug.NewHandler(debug.Options{
		Placements: options.Placements, Authenticator: authenticate, Authorizer: authorize, All: options.All,
	})
	if err != nil {
		return err
	}
	config, err := certificates(mgr, options.CertDir)
	if err != nil {
		return fmt.Errorf("certificate of the debug server: %w", err)
	}
	return mgr.Add(&server{address: options.Address, tls: config, handler: handler})
}

// certificates returns the TLS configuration of the server.
func certificates(mgr manager.Manager, dir string) (*tls.Config, error) {
	if dir == "" {
		return serving.SelfSigned()
	}
	config, watcher, err := managed.Certificate(filepath.Join(dir, certFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, err
	}
	return config, mgr.Add(watcher)
}

// server is a runnable of a manager. It listens after Start is called.
type server struct {
	address string
	tls     *tls.Config
	handler http.Handler
}

// NeedLeaderElection returns false, because the server runs in all replicas.
func (s *server) NeedLeaderElection() bool { return false }

// Start serves requests until ctx is done. Requests in progress are then interrupted.
func (s *server) Start(ctx context.Context) error {
	listener, err := serving.Listen(ctx, s.address)
	if err != nil {
		return fmt.Errorf("debugging of placement: %w", err)
	}
	return managed.NewServer(ctx, "placement-debug", tls.NewListener(listener, s.tls), serving.NewBodies(s.handler)).Start(ctx)
}
