// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unreadable is a reader whose List fails after the given number of calls.
type unreadable struct {
	client.Reader
	failed error
	after  *int
}

func (u unreadable) List(context.Context, client.ObjectList, ...client.ListOption) error {
	if *u.after--; *u.after < 0 {
		return u.failed
	}
	return nil
}

func TestPreviewOfAHubThatCannotBeRead(t *testing.T) {
	gone := errors.New("gone")
	for read, kind := range []string{"PlacementDecisions", "ManagedClusters", "AddOnPlacementScores", "ManagedClusterSets", "ManagedClusterSetBindings"} {
		preview, err := NewPreview(unreadable{failed: gone, after: &read}, Options{})
		must(t, err)
		result, err := preview.Schedule(t.Context(), &clusterv1beta1.Placement{}, time.Time{})
		require.ErrorIs(t, err, gone)
		require.ErrorContains(t, err, "list "+kind)
		require.Nil(t, result)
	}
}
