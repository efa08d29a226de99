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

// A gate is a proxy between a scheduler and the API server. It delays the writes that allocate claims.
type gate struct {
	api http.RoundTripper
	// wait is called before each allocating write. The write proceeds when wait returns.
	wait func()
	// answers receives the API server's response to each allocating write.
	answers chan answer
}

type answer struct {
	code int
	body string
}

// newGate returns a gate that uses the user's rights, and a kubeconfig that makes a scheduler connect to the gate.
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

// RoundTrip forwards a request to the API server. A delayed request is forwarded even if its sender has ended in the meantime.
// If the API server or the guard fails with a server error, RoundTrip retries. An example is a guard on a busy machine that has
// lost its lease.
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

// slow is a function wait for gates. During the delay, the other scheduler does not see the allocation.
func slow() { time.Sleep(200 * time.Millisecond) }
