// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package twoschedulers

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/celset/celset/test/internal/env"
)

// A gate is a proxy between a scheduler and the API server that delays allocations.
type gate struct {
	api http.RoundTripper
	// wait returns when an allocation may proceed.
	wait func()
	// answers receives the answers to allocations.
	answers chan answer
}

type answer struct {
	code int
	body string
}

// newGate returns a gate for a user, and a kubeconfig that leads to it.
func (c *cluster) newGate(t *testing.T, user string, wait func()) (g *gate, kubeconfig string) {
	t.Helper()
	config, err := c.RESTConfigFor(user)
	require.NoError(t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	api, err := url.Parse(config.Host)
	require.NoError(t, err)
	g = &gate{api: transport, wait: wait, answers: make(chan answer, 1000)}
	server := env.Proxy(api, g)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return g, env.Kubeconfig(t, server.URL)
}

// RoundTrip delivers each request to the API server, even if the sender has ended meanwhile. It retries requests that the API
// server or the guard could not judge, for example after a replica of the guard on a busy machine has lost its lease.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPut || !strings.Contains(r.URL.Path, "/resourceclaims/") || !strings.HasSuffix(r.URL.Path, "/status") {
		return g.api.RoundTrip(r)
	}
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	g.wait()
	response, body, err := g.send(r, content)
	for end := time.Now().Add(env.Patience); err == nil && response.StatusCode >= http.StatusInternalServerError && time.Now().Before(end); {
		time.Sleep(time.Second)
		response, body, err = g.send(r, content)
	}
	if err != nil {
		g.answers <- answer{body: err.Error()}
		return nil, err
	}
	g.answers <- answer{response.StatusCode, string(body)}
	return response, nil
}

func (g *gate) send(r *http.Request, content []byte) (*http.Response, []byte, error) {
	sent := r.Clone(context.WithoutCancel(r.Context()))
	sent.Body = io.NopCloser(bytes.NewReader(content))
	response, err := g.api.RoundTrip(sent)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, body, err
}

// slow delays an allocation, so that another scheduler sees it later.
func slow() { time.Sleep(200 * time.Millisecond) }
