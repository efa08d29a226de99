// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

// TestNobodyWaitsForDevicesOfAPodThatIsGone deletes a pod with its claim while the scheduler's allocation of the claim is in
// flight. Until the scheduler notices the deletion, it reserves the devices and rejects another pod. Afterwards the other pod
// must get the devices, although no other event causes a retry.
func TestNobodyWaitsForDevicesOfAPodThatIsGone(t *testing.T) {
	// naming is the number of condition writes up to the write that names the claim. With the feature gate on, an earlier write
	// nominates the node.
	naming := 1
	if minor.Has(features.NominatedNodeNameForExpectation) {
		naming = 2
	}
	for _, test := range []struct {
		kind *kind
		held write
		nth  int
		fit  int // number of pods of this kind that fit on a node
	}{
		{blockKind, allocate, 1, 1},
		{plainKind, allocate, 1, 4},
		{extendedKind, allocate, 1, 8},
		{extendedKind, setCondition, naming, 8},
	} {
		t.Run(fmt.Sprintf("%s before %s", test.kind.name, test.held), func(t *testing.T) {
			w := newWorkload(t, "deleted", 1)
			g := w.openGate(t)
			trap := g.delay(test.held, test.nth)
			start(t, g, enabled())
			gone := w.add(t, test.kind)
			trap.await(t)
			w.requireBound(t, w.add(t, slices.Repeat([]*kind{test.kind}, test.fit-1)...)...)
			w.requireRefused(t, "0/1 nodes are available", w.add(t, test.kind)...)

			w.delete(t, gone...)
			w.requireNoClaimsLeft(t)
			// When this pod has been tried, the scheduler has seen the deletions.
			w.requireRefused(t, "0/1 nodes are available", w.add(t, test.kind)...)
			trap.release()
			w.requireSettled(t)
			require.Len(t, w.allocations(t), test.fit)
		})
	}
}

// requireNoClaimsLeft waits until all claims of deleted pods are deleted.
func (w *workload) requireNoClaimsLeft(t *testing.T) {
	t.Helper()
	env.Eventually(t, "the claims of the pods that were deleted are gone", func(ctx context.Context) (string, error) {
		pods, claims, err := w.list(ctx)
		if err != nil {
			return "", err
		}
		for _, claim := range claims {
			for _, owner := range claim.OwnerReferences {
				if pods[owner.UID] == nil {
					return fmt.Sprintf("claim %s is left of pod %s", claim.Name, owner.Name), nil
				}
			}
		}
		return "", nil
	})
}

// These tests kill a scheduler, and start another one. No other event happens that could make the second scheduler retry pods.

// TestLeftClaimForExtendedResourcesHoldsNobodyUp kills a scheduler after it has created the claim for a pod's extended
// resources and before it has allocated the claim. Other pods must get the devices.
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

// TestDevicesOfAPodThatCouldNotBeBoundStayWithItsClaim tests a behaviour of Kubernetes that celset keeps, see
// picture.keepsDevices. If a pod can't be bound and is deleted, its claim stays allocated. The next pod that uses the claim
// gets the devices, and deleting the claim frees them.
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
