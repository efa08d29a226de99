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
	// MaxConnections is how many connections a server has at a time, each with one request. An API server has as many as
	// it waits for answers. With what TLS takes, and the header, a connection is up to 64 KiB.
	MaxConnections = 512
	// maxHeader is how many bytes the header of a request may have. Tokens are in it.
	maxHeader = 16 << 10

	headerTime = 10 * time.Second
	// requestTime is how long a client may take to send a request with its body.
	requestTime = 15 * time.Second
	// answerTime is how long a request may take from its header to the end of its answer. API
	// servers wait for 30 seconds at most.
	answerTime = time.Minute
	idleTime   = 90 * time.Second
)

// Listen listens at an address, as [net.Listen] has it, for at most [MaxConnections].
func Listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return Limit(listener, MaxConnections), nil
}

// Limit has a listener accept so many connections at a time.
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

// New returns a server. The contexts of requests end with ctx.
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

// SelfSigned returns a certificate that is for this host, which nobody can verify.
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
