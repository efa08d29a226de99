// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestNodesThatNobodyManagesStayUnready(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, looks := fake.NewClientset(), 0
	client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		if looks++; looks == 2 {
			cancel()
		}
		return false, nil, nil
	})
	_, err := CreateNodes(ctx, client, 1, NodeOptions{})
	require.ErrorContains(t, err, "1 are not, is kwok running?")
}
