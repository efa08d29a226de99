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
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/celset/celset/internal/serving"
)

// Identity provides the certificate of a server. Its Start runs until the context ends.
type Identity interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Start(ctx context.Context) error
}

// Files returns a function that creates an identity from files with a certificate and its key. The files are read again when
// they change. They must exist when the server starts.
func Files(certificate, key string) func() (Identity, error) {
	return func() (Identity, error) { return certwatcher.New(certificate, key) }
}

// Webhooks is a webhook server with the bounds of package serving. It implements [webhook.Server].
type Webhooks struct {
	webhook.Server
	address   string
	identity  func() (Identity, error)
	listening atomic.Bool
}

// NewWebhooks returns a webhook server that listens at an address. The server calls identity when it starts.
func NewWebhooks(address string, identity func() (Identity, error)) *Webhooks {
	return &Webhooks{Server: webhook.NewServer(webhook.Options{}), address: address, identity: identity}
}

// Start implements [webhook.Server].
func (w *Webhooks) Start(ctx context.Context) error {
	identity, err := w.identity()
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: identity.GetCertificate}
	// Allow only HTTP/1.1. Over one HTTP/2 connection a client could send a hundred requests at once, each with a header and a
	// part of a body in memory.
	config.NextProtos = []string{"http/1.1"}
	listener, err := serving.Listen(ctx, w.address)
	if err != nil {
		return err
	}
	w.listening.Store(true)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return identity.Start(ctx) })
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
