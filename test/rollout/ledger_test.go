// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/ledger"
)

// keepLedger keeps a ledger of the claims of a namespace, which has none yet, until the test
// ends. It reads what is stored in etcd at the URL store, if there is one.
func keepLedger(t *testing.T, namespace, store string) *ledger.Ledger {
	t.Helper()
	l := ledger.New(judge)
	ctx, cancel := context.WithCancel(t.Context())
	follow := func() (<-chan struct{}, error) { return l.Follow(ctx, client(), namespace, "") }
	if store != "" {
		follow = func() (<-chan struct{}, error) { return l.FollowStore(ctx, store, namespace) }
	}
	done, err := follow()
	require.NoError(t, err)
	require.Empty(t, l.Difference(nil))
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l
}
