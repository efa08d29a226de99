// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	certutil "k8s.io/client-go/util/cert"
)

const (
	// MaxConnections is the maximum number of connections of a server. An API server opens one connection for each answer that
	// it waits for. A connection takes up to 64 KiB with its TLS state and header.
	MaxConnections = 512
	// maxHeader is the maximum size of a request header in bytes. A header may include tokens.
	maxHeader = 16 << 10

	headerTime = 10 * time.Second
	// requestTime is the maximum time for a client to send a request with its body.
	requestTime = 15 * time.Second
	// answerTime is the maximum time from the header of a request to the end of its answer. API servers wait at most 30
	// seconds.
	answerTime = time.Minute
	idleTime   = 90 * time.Second
)

// Listen listens at an address, which has the form that [net.Listen] requires. It accepts at most [MaxConnections] at a time.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return Limit(listener, MaxConnections), nil
}

// Limit returns a listener that accepts at most the given number of connections at a time.
func Limit(listener net.Listener, connections int) net.Listener {
	return &limited{Listener: listener, shares: NewShares(connections)}
}

type limited struct {
	net.Listener
	shares *Shares
}

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		share := l.shares.Join(hostOf(accepted.RemoteAddr().String()), func() { _ = accepted.Close() })
		if share.Try(1) {
			return &connection{accepted, share}, nil
		}
		share.Return()
		_ = accepted.Close()
	}
}

type connection struct {
	net.Conn
	share *Share
}

// Close implements [net.Conn].
func (c *connection) Close() error {
	c.share.Return()
	return c.Conn.Close()
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// New returns a server with the bounds of this package. The contexts of requests end when ctx ends.
func New(ctx context.Context, handler http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      answerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		Protocols:         &protocols,
	}
}

// SelfSigned returns a TLS configuration with a new self-signed certificate for this host. Clients can't verify this
// certificate.
func SelfSigned() (*tls.Config, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, nil
}
