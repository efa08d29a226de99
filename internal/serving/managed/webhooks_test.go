// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/celset/celset/internal/serving/managed"
)

func TestWebhooks(t *testing.T) {
	log.SetLogger(logr.Discard())
	dir := t.TempDir()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	certificateFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	webhooks := managed.NewWebhooks("127.0.0.1:0", managed.Files(certificateFile, keyFile))
	require.Error(t, webhooks.StartedChecker()(nil))
	require.ErrorContains(t, webhooks.Start(t.Context()), "tls.crt")
	require.NoError(t, os.WriteFile(certificateFile, certificate, 0o600))
	require.NoError(t, os.WriteFile(keyFile, key, 0o600))
	webhooks.Register("/here", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	require.Error(t, webhooks.StartedChecker()(nil))

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- webhooks.Start(ctx) }()
	require.Eventually(t, func() bool { return webhooks.StartedChecker()(nil) == nil }, time.Minute, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}
