// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/internal/testing/ledger"
)

// eventuallyPods waits until check has nothing to complain about any pod of a unit.
func (w *workload) eventuallyPods(t *testing.T, unit, what string, check func(*corev1.Pod) (complaint string)) {
	t.Helper()
	for _, name := range w.live[unit].pods {
		env.Eventually(t, fmt.Sprintf("pod %s is %s", name, what), func(ctx context.Context) (string, error) {
			pod, err := client().CoreV1().Pods(w.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return check(pod), nil
		})
	}
}

// requireBound waits until all pods of the units have a node.
func (w *workload) requireBound(t *testing.T, units ...string) {
	t.Helper()
	for _, unit := range units {
		w.eventuallyPods(t, unit, "bound", func(pod *corev1.Pod) string {
			if pod.Spec.NodeName == "" {
				return "it has no node: " + refusalOf(pod)
			}
			return ""
		})
	}
}

// requireRefused waits until the scheduler says, with the text, that it has no node for
// the pods of the units.
func (w *workload) requireRefused(t *testing.T, text string, units ...string) {
	t.Helper()
	for _, unit := range units {
		w.eventuallyPods(t, unit, "refused: "+text, func(pod *corev1.Pod) string {
			if pod.Spec.NodeName != "" || !strings.Contains(refusalOf(pod), text) {
				return fmt.Sprintf("node %q: %s", pod.Spec.NodeName, refusalOf(pod))
			}
			return ""
		})
	}
	for name, allocation := range w.allocations(t) {
		for _, unit := range units {
			require.False(t, name == unit || strings.HasPrefix(name, unit+"-"), "claim %s has %v", name, allocation)
		}
	}
}

// requireFreed waits until the claims of units that were deleted have no devices.
func (w *workload) requireFreed(t *testing.T) {
	t.Helper()
	for name := range w.freed {
		env.Eventually(t, "claim "+name+" gives its devices back", func(ctx context.Context) (string, error) {
			claim, err := client().ResourceV1().ResourceClaims(w.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return strings.Join(ledger.DevicesOf(claim), ", "), nil
		})
	}
}

// join has one more pod use the claim of a unit.
func (w *workload) join(t *testing.T, unit string) {
	t.Helper()
	u := w.live[unit]
	require.NotEmpty(t, u.claim)
	name := fmt.Sprintf("%s-%d", unit, len(u.pods))
	_, err := client().CoreV1().Pods(w.namespace).Create(t.Context(), u.kind.pod(name, u.claim), metav1.CreateOptions{})
	require.NoError(t, err)
	u.pods = append(u.pods, name)
}

// allocations are those of all claims that have one, by name.
func (w *workload) allocations(t *testing.T) map[string]resourceapi.AllocationResult {
	t.Helper()
	claims, err := client().ResourceV1().ResourceClaims(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	allocations := map[string]resourceapi.AllocationResult{}
	for _, claim := range claims.Items {
		if claim.Status.Allocation != nil {
			allocations[claim.Name] = *claim.Status.Allocation
		}
	}
	return allocations
}

// requireKept fails the test if one of the allocations is gone or another.
func (w *workload) requireKept(t *testing.T, before map[string]resourceapi.AllocationResult) {
	t.Helper()
	after := w.allocations(t)
	for name, allocation := range before {
		require.Empty(t, cmp.Diff(allocation, after[name]), name)
	}
}
