// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// In these tests nothing happens besides: what a dead scheduler has left is all that
// the next one can be woken up by.

// TestLeftClaimForExtendedResourcesHoldsNobodyUp kills a scheduler that has created the
// claim for the extended resources of a pod, and not allocated it.
func TestLeftClaimForExtendedResourcesHoldsNobodyUp(t *testing.T) {
	for _, p := range []point{{createClaim, after}, {addFinalizer, before}, {addFinalizer, after}, {allocate, before}, {allocate, after}} {
		t.Run(string(p.side)+" "+string(p.write), func(t *testing.T) {
			w := newWorkload(t, "left", 1)
			g := w.openGate(t)
			trap := g.arm(p, 1)
			s := start(t, g, enabled())
			pod := w.add(t, extendedKind)
			trap.await(t)
			s.kill()

			start(t, w.openGate(t), enabled())
			w.requireBound(t, pod...)
			require.Len(t, w.requireSettled(t), 1, "the claim that was left is gone")
		})
	}
}

// TestDevicesOfAPodThatCouldNotBeBoundStayWithItsClaim is about what Kubernetes does,
// in any profile: see picture.keepsDevices. The devices are not lost. The next pod of
// the claim has them, and when the claim is deleted they are free.
func TestDevicesOfAPodThatCouldNotBeBoundStayWithItsClaim(t *testing.T) {
	for _, k := range []*kind{ringKind, stockKind} {
		t.Run(k.profile, func(t *testing.T) {
			w := newWorkload(t, "unbound", 1)
			s := start(t, w.openGate(t), enabled())
			trap := s.gate.arm(point{unreserve, after}, 1)
			name := w.add(t, k)[0]
			trap.await(t)
			s.kill()
			kept := w.allocations(t)
			require.Len(t, kept, 1)
			w.delete(t, name)

			s = start(t, w.openGate(t), enabled())
			w.requireSettled(t)
			w.requireKept(t, kept)

			w.live[name] = &unit{kind: k, claim: name}
			w.freed.Delete(name)
			w.join(t, name)
			w.requireBound(t, name)
			w.requireKept(t, kept)
			w.delete(t, name)
			w.requireFreed(t)
			w.deleteFreed(t)
			require.Empty(t, w.requireSettled(t))
			s.requireAlive(t)
		})
	}
}
