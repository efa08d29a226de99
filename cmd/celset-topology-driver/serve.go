// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/celset/celset/cmd/internal/program"
	"github.com/celset/celset/internal/topologydriver"
)

// Clients of a node-local port are given little time.
const (
	headerTimeout   = 10 * time.Second
	shutdownTimeout = 3 * time.Second
)

// probes are /healthz, which fails if the kubelet would get no answer, and /readyz, which
// fails until the kubelet knows the drivers.
func probes(drivers *topologydriver.Drivers) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/healthz", http.StripPrefix("/healthz", &healthz.Handler{Checks: map[string]healthz.Checker{"sockets": drivers.Healthy}}))
	mux.Handle("/readyz", http.StripPrefix("/readyz", &healthz.Handler{Checks: map[string]healthz.Checker{"registration": drivers.Ready}}))
	return mux
}

func metricsPage() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", legacyregistry.Handler())
	return mux
}

// serve answers at the address that a flag gives until the context ends.
func serve(ctx context.Context, flag, address string, handler http.Handler) error {
	if address == program.NoAddress {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	stopped := make(chan error, 1)
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		stopped <- server.Shutdown(last)
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return <-stopped
}
