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

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/testing/minor"
)

// TestNobodyWaitsForDevicesOfAPodThatIsGone deletes a pod, with its claim, while the
// scheduler is writing that the claim has devices. Until it finds out it keeps them for
// that pod, and refuses another. Then that one gets them, although nothing else happens
// that could wake it up.
func TestNobodyWaitsForDevicesOfAPodThatIsGone(t *testing.T) {
	// Where the first nominates the node, this names the claim.
	naming := 1
	if minor.Has(features.NominatedNodeNameForExpectation) {
		naming = 2
	}
	for _, test := range []struct {
		kind *kind
		held write
		nth  int
		fit  int // pods of the kind on a node
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
			// While it comes to this pod it takes notice of what was deleted.
			w.requireRefused(t, "0/1 nodes are available", w.add(t, test.kind)...)
			trap.release()
			w.requireSettled(t)
			require.Len(t, w.allocations(t), test.fit)
		})
	}
}

// requireNoClaimsLeft waits until no claim is left of a pod that is gone.
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
