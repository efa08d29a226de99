// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/plugin/hold"
)

// unlistable has the claims of the scheduler, and fails the test if somebody lists all of them.
type unlistable struct {
	fwk.SharedDRAManager
	t *testing.T
}

func (u unlistable) ResourceClaims() fwk.ResourceClaimTracker {
	return unlistableClaims{u.SharedDRAManager.ResourceClaims(), u.t}
}

type unlistableClaims struct {
	fwk.ResourceClaimTracker
	t *testing.T
}

func (c unlistableClaims) List() ([]*resourceapi.ResourceClaim, error) {
	c.t.Error("all claims are listed")
	return c.ResourceClaimTracker.List()
}

// TestHoldsListNoClaims: a pod that waits for a hold is tried often. What is to be freed for it is looked up by UID.
func TestHoldsListNoClaims(t *testing.T) {
	e := podsOnNode("node-a", []int{0}, []int{1}, []int{2})
	job, wanted := jobOf("job", 2)
	_, pl := startPreempting(t, nil, append(e.objects(), class(), job, wanted)...)
	pl.resolver.Manager = unlistable{pl.resolver.Manager, t}
	held := e.heldFor(job, wanted.UID)
	held.Victims, held.Frees = held.Victims[:2], held.Frees[:2]
	held = holdingOf(pl).Keep(held)

	var freed []types.UID
	for _, claim := range holdingOf(pl).freedBy(&held) {
		freed = append(freed, claim.UID)
	}
	require.ElementsMatch(t, held.Frees, freed)
	require.True(t, holdingOf(pl).useOf(&held).freeing)
	alive, ending := preempterOf(pl).victimsOf(&held)
	require.ElementsMatch(t, held.Victims, alive)
	require.False(t, ending)
	trial := &preemptionTrial{holding: holdingOf(pl)}
	trial.resume(&held)
	require.Len(t, trial.only, 2)
	require.Empty(t, holdingOf(pl).freedBy(&hold.Hold{Frees: []types.UID{"gone"}}))
}
