// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/ledger"
)

// KeepLedger keeps a ledger of the claims of a namespace until the test ends, or until stop is called.
// Where etcd and API servers are restarted meanwhile, it is read from etcd.
func (e *Env) KeepLedger(t testing.TB, namespace string, restarted bool, judge func(*resourceapi.ResourceClaim) string) (l *ledger.Ledger, stop func()) {
	t.Helper()
	l = ledger.New(judge)
	ctx, cancel := context.WithCancel(t.Context())
	follow := func() (<-chan struct{}, error) { return l.Follow(ctx, e.Client(), namespace, "") }
	if restarted {
		follow = func() (<-chan struct{}, error) {
			return l.FollowStore(ctx, e.Running(controlplane.Etcd).Endpoint(), namespace)
		}
	}
	done, err := follow()
	require.NoError(t, err)
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return l, stop
}
