// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/tls"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/env"
)

// TestPrometheusMayReadTheScheduler reads as the PodMonitor in manifests/monitoring has Prometheus
// read: with the token of the account beside it, over a TLS that it can't check.
func TestPrometheusMayReadTheScheduler(t *testing.T) {
	t.Parallel()
	require.Equal(t, http.StatusForbidden, status(t, "/metrics", ""), "nobody in particular may not")
	cluster.ApplyManifests(t, "monitoring/scheduler/reader.yaml")
	token := ""
	env.Eventually(t, "the secret has a token", func(ctx context.Context) (string, error) {
		secret, err := client().CoreV1().Secrets("kube-system").Get(ctx, "celset-scheduler-metrics", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		if token = string(secret.Data["token"]); token == "" {
			return "it is empty", nil
		}
		return "", nil
	})
	env.Eventually(t, "the token may read", func(context.Context) (string, error) {
		if got := status(t, "/metrics", token); got != http.StatusOK {
			return http.StatusText(got), nil
		}
		return "", nil
	})
	require.Equal(t, http.StatusForbidden, status(t, "/configz", token), "it may read nothing else")
	require.Equal(t, http.StatusUnauthorized, status(t, "/metrics", "wrong"))
}

// status is what the scheduler answers who has this token, or none.
func status(t *testing.T, path, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.scheduler.Endpoint()+path, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} // as the PodMonitor has it
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
