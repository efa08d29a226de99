// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// nodes is the part of a snapshot that the plugin looks at.
type nodes struct {
	fwk.NodeInfoLister
	all []fwk.NodeInfo
}

func (n nodes) List() ([]fwk.NodeInfo, error) { return n.all, nil }

func (n nodes) Get(name string) (fwk.NodeInfo, error) {
	for _, info := range n.all {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("no node %s", name)
}

// owned is a claim that has devices.
func owned(name string, indices ...int64) *resourceapi.ResourceClaim {
	c := claim(int64(len(indices)))
	c.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-of-" + c.UID}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, index := range indices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourceapi.DeviceRequestAllocationResult{Request: "mla", Driver: driver, Pool: nodeName, Device: deviceName(index)})
	}
	return c
}

// fail runs the pod through the scheduling cycle, as the framework does, until no node is
// left, and returns what PostFilter says.
func fail(ctx context.Context, t *testing.T, pl *DynamicResourcesCEL, names ...string) *fwk.Status {
	t.Helper()
	state := framework.NewCycleState()
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	var all []fwk.NodeInfo
	statuses := map[string]*fwk.Status{}
	for _, name := range names {
		info := node(name)
		all = append(all, info)
		status := pl.Filter(ctx, state, pod(), info)
		require.Equal(t, fwk.UnschedulableAndUnresolvable, status.Code(), name)
		status.SetPlugin(Name)
		statuses[name] = status
	}
	elsewhere := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "too little memory")
	elsewhere.SetPlugin("NodeResourcesFit")
	statuses["full"] = elsewhere
	pl.nodes = func() fwk.NodeInfoLister { return nodes{all: append(all, node("full"))} }
	_, status = pl.PostFilter(ctx, state, pod(), framework.NewNodeToStatus(statuses, fwk.NewStatus(fwk.UnschedulableAndUnresolvable)))
	require.Equal(t, fwk.Unschedulable, status.Code())
	return status
}

// Whose they are is nobody's business in another namespace: conditions and events are read
// by those who may see the pod.
func TestClaimsOfOtherNamespacesAreNotNamed(t *testing.T) {
	other, another := owned("secret", 0), owned("secret", 1)
	other.Namespace, another.Namespace, another.UID = "hidden", "concealed", "another"
	ctx, pl := start(t, true, class(), slice(0, 1, 3, 4), other, another, constrain(t, claim(4), "any", "true"))
	require.Equal(t, "nearest miss: node node-1: request mla wants 4 devices, 2 of 4 that match are free; in the way: 2 claims of other namespaces with mla-0, mla-1",
		fail(ctx, t, pl, nodeName).Message())
}

// Devices that are being allocated are in no claim yet: the pod would fit, were it not for
// them. It is tried again when they are.
func TestNothingIsSaidOfPendingAllocations(t *testing.T) {
	other, pending := owned("other", 0), owned("other", 0)
	other.Status.Allocation = nil
	ctx, pl := start(t, true, class(), slice(0, 1), other, constrain(t, claim(2), "any", "true"))
	require.NoError(t, pl.claims.ResourceClaims().SignalClaimPendingAllocation(pending.UID, pending))
	require.Empty(t, fail(ctx, t, pl, nodeName).Message())
}

// A pod that misses on many nodes costs no more than one that misses on some.
func TestNearestMissLooksAtSomeNodes(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0), constrain(t, claim(2), "any", "true"))
	names := make([]string, 0, 2*nearMissNodes)
	for i := range 2 * nearMissNodes {
		names = append(names, fmt.Sprintf("far-%03d", i))
	}
	require.Contains(t, fail(ctx, t, pl, append(names, nodeName)...).Message(), "nearest miss: node far-000: request mla wants 2 devices, 0 of 0")

	expired, cancel := context.WithCancel(ctx)
	cancel()
	refused := fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	refused.SetPlugin(Name)
	_, err := pl.nearestMiss(expired, pod(), []*resourceapi.ResourceClaim{constrain(t, claim(2), "any", "true")}, framework.NewNodeToStatus(map[string]*fwk.Status{nodeName: refused}, refused))
	require.ErrorIs(t, err, context.Canceled)
}

// An explanation that is not finished in time is none.
func TestNothingIsSaidTooLate(t *testing.T) {
	ctx, pl := start(t, true, class(), slice(0, 2), constrain(t, claim(2), "ring2", ring2))
	state, info := framework.NewCycleState(), node(nodeName)
	_, status := pl.PreFilter(ctx, state, pod(), nil)
	require.True(t, status.IsSuccess(), status)
	refused := pl.Filter(ctx, state, pod(), info)
	refused.SetPlugin(Name)
	pl.nodes = func() fwk.NodeInfoLister { return nodes{all: []fwk.NodeInfo{info}} }
	late, cancel := context.WithCancel(ctx)
	cancel()
	_, status = pl.PostFilter(late, state, pod(), framework.NewNodeToStatus(map[string]*fwk.Status{nodeName: refused}, refused))
	require.Equal(t, fwk.Unschedulable, status.Code())
	require.Empty(t, status.Message())
}

// TestFailedNodesAreNamed: one expression fails on some nodes, and the pod says on which.
func TestFailedNodesAreNamed(t *testing.T) {
	c := constrain(t, claim(2), "row", "devices.all(d, d.attributes['mla.example.com'].row == 1)")
	raw := &c.Spec.Devices.Config[0].Opaque.Parameters.Raw
	*raw = []byte(strings.TrimSuffix(string(*raw), "}") + `, "onError": "NodeDoesNotFit"}`)
	ctx, pl := start(t, true, class(), slice(0, 1), c)
	require.Equal(t, "an expression fails on devices of 1 nodes, such as claim default/claim, constraint row, node node-1, "+
		"devices [mla.example.com/node-1/mla-0, mla.example.com/node-1/mla-1]: the expression fails: line 1, column 47: no such key: row"+
		". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields",
		strings.Split(fail(ctx, t, pl, "node-0", nodeName).Message(), "; ")[0])
}
