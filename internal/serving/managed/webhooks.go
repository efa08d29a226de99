// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/celset/celset/internal/serving"
)

// Webhooks is a server of webhooks with the bounds of package serving.
type Webhooks struct {
	webhook.Server
	address, certificate, key string
	listening                 atomic.Bool
}

// NewWebhooks serves at an address, with the certificate and key of two files.
func NewWebhooks(address, certificate, key string) *Webhooks {
	return &Webhooks{Server: webhook.NewServer(webhook.Options{}), address: address, certificate: certificate, key: key}
}

// Start implements [webhook.Server].
func (w *Webhooks) Start(ctx context.Context) error {
	config, watcher, err := Certificate(w.certificate, w.key)
	if err != nil {
		return err
	}
	// Of HTTP/2 a connection has a hundred requests, each with its header and what was sent of its body.
	config.NextProtos = []string{"http/1.1"}
	listener, err := serving.Listen(ctx, w.address)
	if err != nil {
		return err
	}
	w.listening.Store(true)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watcher.Start(ctx) })
	group.Go(func() error {
		handler := serving.NewBodies(w.WebhookMux())
		return NewServer(context.WithoutCancel(ctx), "webhooks", tls.NewListener(listener, config), handler).Start(ctx)
	})
	return group.Wait()
}

// StartedChecker implements [webhook.Server].
func (w *Webhooks) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !w.listening.Load() {
			return errors.New("the server of the webhooks has not started")
		}
		return nil
	}
}
