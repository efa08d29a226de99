// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/serving"
)

// from returns a dialer that dials from the given address of this host.
func from(address string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: time.Minute}
}

// start serves on the listener until the test ends, and returns the listener's address.
func start(t *testing.T, listener net.Listener, handler http.Handler) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	server := serving.New(ctx, handler)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-done, http.ErrServerClosed)
	})
	return listener.Addr().String()
}

func clientFrom(t *testing.T, address string) *http.Client {
	transport := &http.Transport{DialContext: from(address).DialContext, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 2 * time.Minute}
}

func post(t *testing.T, client *http.Client, url string, body io.Reader) int {
	t.Helper()
	response, err := client.Post(url, "text/plain", body)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

// TestConnectionsAreBounded checks that an address with many open connections does not block another address, but loses its
// oldest connection.
func TestConnectionsAreBounded(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := start(t, serving.Limit(listener, 4), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	var open []net.Conn
	for range 4 {
		conn, err := from("127.0.0.2").DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		open = append(open, conn)
	}
	refused, err := from("127.0.0.2").DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	_, err = refused.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "it has no more than all")
	require.Equal(t, http.StatusOK, post(t, clientFrom(t, "127.0.0.3"), "http://"+address, http.NoBody))
	_, err = open[0].Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF, "the oldest")
	for _, conn := range open[1:] {
		_, err := fmt.Fprintf(conn, "GET / HTTP/1.0\r\n\r\n")
		require.NoError(t, err)
		answer, err := io.ReadAll(conn)
		require.NoError(t, err)
		require.Contains(t, string(answer), "200 OK")
	}
}

// TestSlowBodies has sixty clients at one address that send most of a large body and then stop. Together they get the memory of
// a few clients. A client at another address is answered at once, even with a large body.
func TestSlowBodies(t *testing.T) {
	listener, err := serving.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	identity, err := serving.SelfSigned()
	require.NoError(t, err)
	var asked atomic.Int32
	url := "https://" + start(t, tls.NewListener(listener, identity), serving.NewBodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(body, bytes.Repeat([]byte("x"), len(body))) {
			w.WriteHeader(http.StatusTeapot)
		}
	})))

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 60)
	slow := clientFrom(t, "127.0.0.2")
	for range 60 {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &slowBody{ctx, serving.MaxBody - 100<<10})
		require.NoError(t, err)
		request.ContentLength = serving.MaxBody
		go func() {
			response, err := slow.Do(request)
			if err == nil {
				_ = response.Body.Close()
			}
			ended <- struct{}{}
		}()
	}
	other := clientFrom(t, "127.0.0.3")
	for range 5 {
		require.Equal(t, http.StatusOK, post(t, other, url, io.LimitReader(forever{}, serving.MaxBody)))
		require.Equal(t, http.StatusOK, post(t, other, url, strings.NewReader("xxx")))
	}
	require.Equal(t, http.StatusRequestEntityTooLarge, post(t, other, url, io.LimitReader(forever{}, serving.MaxBody+1)))
	cancel()
	for range 60 {
		<-ended
	}
	require.EqualValues(t, 10, asked.Load(), "a handler is asked when the body is there")
	require.Equal(t, http.StatusRequestEntityTooLarge, post(t, other, url, strings.NewReader(strings.Repeat("{},", 40_000))), "it would be decoded to more")
}

type forever struct{}

func (forever) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

// slowBody is a body that sends some bytes and then blocks until the context ends.
type slowBody struct {
	ctx  context.Context
	left int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	n, err := forever{}.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}
