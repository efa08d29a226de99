// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/plugin/guard"
)

// never is satisfied by no set, and nobody can read it.
const never = `devices.map(d, d.attributes["mla.example.com"].index * (d.attributes["mla.example.com"].index + 7)).sum() % 1000003 == 1000002`

// simulateNever tries on an empty node of sixteen devices for a claim that never fits.
func simulateNever(t *testing.T, name string, budget *allocator.AttemptBudget) error {
	t.Helper()
	var indices []int64
	for i := range int64(16) {
		indices = append(indices, 'a'-'0'+i)
	}
	wanted := constrain(t, claim(8), "never", never)
	wanted.Name, wanted.UID = name, types.UID("claim-"+name)
	user := evictablePod(name, 1000, "1", name)
	ctx, h := newHandle(t, class(), slice(indices...), wanted, user)
	shared := newShared()
	shared.preempts = true
	pl, err := newPlugin(ctx, nil, h, features(), true, newMetrics(t), shared)
	require.NoError(t, err)
	h.start(ctx, t, class(), wanted)
	claims := []*resourceapi.ResourceClaim{wanted}
	trial, err := pl.newTrial(ctx, user, claims, nil, budget)
	require.NoError(t, err)
	s := &simulation{preemptionTrial: trial, removed: map[types.UID]*v1.Pod{}}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{v1.LabelHostname: nodeName}}}
	_, err = s.allocate(ctx, node, claims)
	return err
}

// TestTrialsShareABudget: what one has used up is missing in the next, however many there are.
func TestTrialsShareABudget(t *testing.T) {
	const steps = 2000
	budget := allocator.NewAttemptBudget(1<<40, steps)
	for _, name := range []string{"first", "second", "third"} {
		require.ErrorAs(t, simulateNever(t, name, budget), new(*allocator.BudgetError), name)
		require.Less(t, budget.Steps(), int64(2*steps), name)
	}
}

// TestTrialEndsWithItsAttempt: also in the middle of a search, and then nothing is said of the node.
func TestTrialEndsWithItsAttempt(t *testing.T) {
	budget := allocator.NewAttemptBudget(1<<40, 1<<40)
	budget.End(&guard.OvertimeError{})
	err := simulateNever(t, "job", budget)
	require.ErrorIs(t, err, structured.ErrFailedAllocationOnNode)
	require.ErrorContains(t, err, "not looked at")
	require.LessOrEqual(t, budget.Steps(), int64(1))
}
