// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLockFileHonoursContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := lockFile(t.Context(), path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = lockFile(ctx, path)
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, held.Close())
	again, err := lockFile(ctx, path)
	require.NoError(t, err, "a free lock needs no waiting")
	require.NoError(t, again.Close())
}
