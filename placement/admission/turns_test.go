// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/fairness"
)

func TestPlacementsTakeTurns(t *testing.T) {
	checker, err := NewChecker(Options{})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		v := validator{checker, fairness.NewTurns(1, 1)}
		object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
		end, err := v.take(t.Context(), "ns")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error, 1)
		go func() {
			_, err := v.ValidateCreate(ctx, object)
			second <- err
		}()
		synctest.Wait()
		_, err = v.ValidateUpdate(t.Context(), object, object)
		require.True(t, apierrors.IsTooManyRequests(err))
		require.ErrorContains(t, err, "Placements of namespace ns wait to be checked; try again")
		cancel()
		require.ErrorIs(t, <-second, context.Canceled)
		end()
		_, err = v.ValidateCreate(t.Context(), object)
		require.NoError(t, err)
	})
}
