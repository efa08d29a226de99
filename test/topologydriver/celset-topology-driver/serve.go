// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/celset/celset/internal/program"
	"github.com/celset/celset/internal/serving"
	"github.com/celset/celset/internal/serving/managed"
	"github.com/celset/celset/test/topologydriver"
)

// probes returns a handler for two probes. /healthz fails if a driver does not answer calls on its sockets. /readyz fails until
// the kubelet has registered all drivers.
func probes(drivers *topologydriver.Drivers) http.Handler {
	return program.Probes(program.Checks{
		Live:  map[string]healthz.Checker{"sockets": drivers.Healthy},
		Ready: map[string]healthz.Checker{"registration": drivers.Ready},
	})
}

func metricsPage() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", legacyregistry.Handler())
	return mux
}

// serve runs an HTTP server at an address until the context ends. flag is the name of the flag with the address, for errors.
func serve(ctx context.Context, flag, address string, handler http.Handler) error {
	if address == program.NoAddress {
		return nil
	}
	listener, err := serving.Listen(ctx, address)
	if err == nil {
		err = managed.NewServer(context.WithoutCancel(ctx), flag, listener, handler).Start(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}
