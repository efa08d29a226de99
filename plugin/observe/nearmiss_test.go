// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/internal/testing/plugintest"
	"github.com/celset/celset/plugin/cycle"
	"github.com/celset/celset/plugin/demand"
	"github.com/celset/celset/plugin/preparation"
)

// oneNode is a lister of a cluster with one node.
type oneNode struct {
	fwk.NodeInfoLister
	info fwk.NodeInfo
}

func (n oneNode) List() ([]fwk.NodeInfo, error) { return []fwk.NodeInfo{n.info}, nil }

func (n oneNode) Get(string) (fwk.NodeInfo, error) { return n.info, nil }

// TestExplanationEndsWithItsContext checks that an explanation ends when its context is done, because other pods wait.
func TestExplanationEndsWithItsContext(t *testing.T) {
	const name = "DynamicResourcesCEL"
	ctx, h := plugintest.NewHandle(t, plugintest.Class(), plugintest.Slice(0))
	h.Start(ctx, t, plugintest.Class())
	store, err := preparation.NewStore(plugintest.Features(), h.Manager, nil)
	require.NoError(t, err)
	allocators := &cycle.Allocators{
		Resolver: &cycle.Resolver{Manager: h.Manager, Features: plugintest.Features(), Enabled: true}, Preparing: store,
		Asked: demand.New(), Budget: allocator.Budget{Cost: 1 << 40, Steps: 1 << 20}, Cache: allocator.NewCache(),
	}
	misses := &NearMisses{
		Allocators: allocators, Prepared: preparation.AtOnce{View: preparation.View{Store: store, Constraints: true}}, Name: name,
		Nodes: func() fwk.NodeInfoLister { return oneNode{info: plugintest.Node(plugintest.NodeName)} },
	}
	refused := fwk.NewStatus(fwk.UnschedulableAndUnresolvable).WithPlugin(name)
	statuses := framework.NewNodeToStatus(map[string]*fwk.Status{plugintest.NodeName: refused}, refused)
	claims := &cycle.PodClaims{Unallocated: []*resourceapi.ResourceClaim{plugintest.Constrain(t, plugintest.Claim(2), "any", "true")}}
	miss, err := misses.nearestMiss(ctx, plugintest.Pod(), claims, statuses)
	require.NoError(t, err)
	require.Equal(t, plugintest.NodeName, miss.Node)

	expired, cancel := context.WithCancel(ctx)
	cancel()
	_, err = misses.nearestMiss(expired, plugintest.Pod(), claims, statuses)
	require.ErrorIs(t, err, context.Canceled)
}
