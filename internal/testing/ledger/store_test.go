// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/testing/ledger"
)

// TestFollowStoreHasNoGaps keeps a ledger while the API server and etcd are ended and started
// again between versions of claims.
func TestFollowStoreHasNoGaps(t *testing.T) {
	if os.Getenv(controlplane.KubernetesEnv) != "" {
		t.Skip("claims are stored in another version")
	}
	cp := env.APIServer(t)
	claims := cp.Client().ResourceV1().ResourceClaims("default")
	make := func(name, device string) {
		t.Helper()
		made := env.Claim(name, env.Request("r", "any", 1))
		made, err := claims.Create(t.Context(), made, metav1.CreateOptions{})
		require.NoError(t, err)
		made.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: "driver", Pool: "pool", Device: device}},
		}}
		_, err = claims.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	make("a", "0")
	l := ledger.New(func(*resourceapi.ResourceClaim) string { return "" })
	ctx, cancel := context.WithCancel(t.Context())
	done, err := l.FollowStore(ctx, cp.Running(controlplane.Etcd).Endpoint(), "default")
	require.NoError(t, err)
	require.Equal(t, 1, l.Entries().InUse, "it starts with what there is")

	make("b", "1")
	require.NoError(t, cp.RestartAPIServer(ctx, nil))
	make("c", "2")
	require.NoError(t, cp.RestartEtcd(ctx, nil))
	make("d", "3")
	make("e", "3")
	_, err = claims.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, claims.Delete(ctx, "a", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		list, err := claims.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		return l.Difference(list.Items) == ""
	}, 2*time.Minute, 50*time.Millisecond)
	require.Len(t, l.Entries().Violations, 1, "%v", l.Entries().Violations)
	require.Contains(t, l.Entries().Violations[0], "gets device driver/pool/3, which claim d has")
	require.Equal(t, 3, l.Entries().InUse)
	cancel()
	<-done
	require.Len(t, l.Entries().Violations, 1, "the end of the context is no gap")
}
