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
	// MaxConnections is how many connections a server has at a time. With what TLS takes, and the
	// headers, a connection is up to 100 KiB.
	MaxConnections = 256
	// maxHeader is how many bytes the header of a request may have. Tokens are in it.
	maxHeader = 32 << 10
	// maxStreams is how many requests one connection has at a time.
	maxStreams = 100

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
	return &http.Server{
		Handler:           handler,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		WriteTimeout:      answerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: headerTime},
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
