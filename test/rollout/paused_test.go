// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/ledger"
)

// TestPausedLeaderGivesDevicesTwice has a scheduler sleep beyond its lease, with an allocation
// on its way. Another one leads, and gives the same devices to another claim. Then what was on
// its way arrives: it changes a claim that nobody else has changed, so the API server stores
// it. That is what Kubernetes is without a guard; a scheduler can't know that it has slept.
func TestPausedLeaderGivesDevicesTwice(t *testing.T) {
	w := newWorkload(t, "paused", 1)
	p := w.pauseLeader(t)
	p.wake(t)
	eventually(t, "the devices are in two claims", func(ctx context.Context) (string, error) {
		violations := w.ledger.Entries().Violations
		if len(violations) == 0 {
			return "nothing has happened yet", nil
		}
		require.Contains(t, violations[0], "claim "+p.late+" at version")
		require.Contains(t, violations[0], ", which claim "+p.early+" has")
		return "", nil
	})
	// The controller manager finds that the claim's pod is gone and takes its devices back; had the pod stayed
	// elsewhere, nobody would.
	<-p.old.Done() // it finds that it leads no longer
}

// pausedLeader is a scheduler that sleeps, and was overtaken.
type pausedLeader struct {
	old, next *scheduler
	trap      *trap
	// early is the claim that got devices from the next leader, late the one that is to get
	// the same when the old one goes on.
	early, late string
}

// pauseLeader starts two schedulers. The first chooses devices for a claim and sleeps before
// that is stored, for longer than its lease. The claim's pod goes, and the second gives the
// same devices to another claim.
func (w *workload) pauseLeader(t *testing.T) *pausedLeader {
	t.Helper()
	p := &pausedLeader{old: start(t, w.openGate(t), electing(t, "old", faultsLease))}
	p.trap = p.old.gate.delay(allocate, 1)
	p.late = w.add(t, ringKind)[0]
	p.trap.await(t)
	require.NoError(t, p.old.Pause())
	w.delete(t, p.late)
	p.next = start(t, w.openGate(t), electing(t, "next", faultsLease))
	p.early = w.add(t, ringKind)[0]
	w.requireBound(t, p.early)
	claim, err := client().ResourceV1().ResourceClaims(w.namespace).Get(t.Context(), p.late, metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, ledger.DevicesOf(claim))
	return p
}

// wake lets the scheduler go on, and its allocation arrive.
func (p *pausedLeader) wake(t *testing.T) {
	t.Helper()
	require.NoError(t, p.old.Continue())
	p.trap.release()
}
