// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package setpublisher

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"

	"github.com/celset/celset/allocator/fragmentation"
	"github.com/celset/celset/plugin/metrics"
)

// publisherTo returns a publisher to a hub that responds with answer. user is the entry of the publisher's kubeconfig for its
// user, as YAML.
func publisherTo(t *testing.T, user string, answer http.HandlerFunc) *Publisher {
	t.Helper()
	hub := httptest.NewTLSServer(answer)
	t.Cleanup(hub.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{kind: Config, current-context: c, contexts: [{name: c, context: {cluster: hub, user: u}}],
clusters: [{name: hub, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: u, user: %s}]}`, hub.URL, user), 0o600))
	return &Publisher{
		Kubeconfig: file, Cluster: "cluster1", Interval: time.Minute, Clock: clock.RealClock{}, Observe: func(metrics.Publication) {},
		Counted: func() *metrics.Fragmentation {
			return &metrics.Fragmentation{At: time.Now(), Report: &fragmentation.Report{}}
		},
	}
}

// TestAnswerWithoutEnd checks that an endless response of the hub fills neither the scheduler's memory nor its log.
func TestAnswerWithoutEnd(t *testing.T) {
	ended := make(chan int, 1)
	p := publisherTo(t, "{}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		sent := 0
		for err := error(nil); err == nil && sent < 64<<20; sent += 1 << 20 {
			_, err = w.Write(make([]byte, 1<<20))
		}
		ended <- sent
	})
	require.Error(t, p.Publish(t.Context()))
	// The hub may have sent more than maxAnswer bytes, because buffers of the connection take some.
	require.Less(t, <-ended, 32<<20)

	p = publisherTo(t, "{}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no %s"}`, strings.Repeat("é", maxAnswer/4))
	})
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))))
	p.Observe = func(metrics.Publication) { defer cancel() }
	p.Run(ctx)
	require.Contains(t, log.String(), "no éé")
	require.Less(t, log.Len(), 3*maxLogged)
}

// TestAnswerThatGrows checks that decoding a response with many tiny objects does not take many times the memory of the
// response.
func TestAnswerThatGrows(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		p := publisherTo(t, "{}", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			many := "[" + strings.Repeat("{},", 1<<20) + "{}]"
			_, _ = fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "details": {"causes": %s}, "list": %s}`, many, many)
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := p.Publish(t.Context())
		runtime.ReadMemStats(&after)
		require.Equal(t, status != http.StatusOK, err != nil, "%v", err)
		// The limit is generous because the measured memory includes the test server.
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	}
}

// TestAnswerThatMovesTheCursor checks that an error response with line breaks and control characters becomes a single log line
// without them.
func TestAnswerThatMovesTheCursor(t *testing.T) {
	p := publisherTo(t, "{}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "message": "no\u001b]0;x\u0007\r\nI1129 10:00:00.000000 1 main.go:1] \"All is well\""}`)
	})
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))))
	p.Observe = func(metrics.Publication) { defer cancel() }
	p.Run(ctx)
	require.Contains(t, log.String(), "All is well")
	require.Len(t, strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n"), 1)
	require.Equal(t, -1, strings.IndexFunc(strings.TrimSuffix(log.String(), "\n"), unicode.IsControl))
}

// TestCredentialsThatHang checks that each attempt to publish ends by its timeout, even if the credential plugin hangs.
func TestCredentialsThatHang(t *testing.T) {
	end := filepath.Join(t.TempDir(), "end")
	p := publisherTo(t, fmt.Sprintf(`{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [-c, "until [ -e %s ]; do sleep 0.05; done"]}}`, end),
		func(http.ResponseWriter, *http.Request) { t.Error("a request without credentials") })
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		require.ErrorIs(t, p.Publish(ctx), context.DeadlineExceeded)
		cancel()
	}
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	require.Error(t, p.Publish(t.Context()), "the plugin has ended, without credentials")
}
