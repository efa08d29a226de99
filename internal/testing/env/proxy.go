// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy stands between programs and the API server at a URL: requests go through the transport, which
// adds credentials. A request that fails is one without an answer. Its owner closes it.
func Proxy(api *url.URL, transport http.RoundTripper) *httptest.Server {
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(api) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		// Watches that end are nothing to tell of.
		ErrorLog: log.New(io.Discard, "", 0),
	})
}

// Kubeconfig writes one for a server that asks for no credentials.
func Kubeconfig(t testing.TB, server string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"proxy": {Server: server}},
		Contexts:       map[string]*clientcmdapi.Context{"proxy": {Cluster: "proxy"}},
		CurrentContext: "proxy",
	}, path))
	return path
}
