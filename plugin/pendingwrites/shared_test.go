// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"
)

var (
	errElsewhere = errors.New("got allocated elsewhere in the meantime")
	errDeleted   = errors.New("got deleted in the meantime")
)

// bindPod binds a pod as upstream's plugin does. claim is the version that the scheduler read before. chosen is the allocation
// to store, or nil if the claim is already allocated. bindPod adds a reservation for the pod.
func bindPod(ctx context.Context, client kubernetes.Interface, claim *resourceapi.ResourceClaim, chosen *resourceapi.AllocationResult, pod string) error {
	claims, isRead := client.ResourceV1().ResourceClaims(claim.Namespace), true
	claim = claim.DeepCopy()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if !isRead {
			got, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			claim = got
		}
		isRead = false
		if claim.DeletionTimestamp != nil {
			return errDeleted
		}
		if chosen != nil {
			if claim.Status.Allocation != nil {
				return errElsewhere
			}
			if !slices.Contains(claim.Finalizers, resourceapi.Finalizer) {
				claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
				got, err := claims.Update(ctx, claim, metav1.UpdateOptions{})
				if err != nil {
					return fmt.Errorf("add finalizer: %w", err)
				}
				claim = got
			}
			claim.Status.Allocation = chosen.DeepCopy()
		}
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID(pod)})
		got, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		if err == nil {
			claim = got
		}
		return err
	})
}

func allocationOf(device string) *resourceapi.AllocationResult {
	return &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "r", Driver: "d", Pool: "p", Device: device}},
		Config: []resourceapi.DeviceAllocationConfiguration{{DeviceConfiguration: resourceapi.DeviceConfiguration{
			Opaque: &resourceapi.OpaqueDeviceConfiguration{Driver: "d", Parameters: runtime.RawExtension{Raw: []byte(`{"a": 1}`)}},
		}}},
	}}
}

// sharing has a claim that many pods share. The scheduler has read the claim once, and its watch delivers no events.
type sharing struct {
	*server
	writes *Writes
	claim  *resourceapi.ResourceClaim
}

func newSharing(t anyTest, finalizers ...string) *sharing {
	s := &sharing{server: &server{stored: map[string]*resourceapi.ResourceClaim{}}}
	claim := named("shared")
	claim.UID, claim.Finalizers = "shared", finalizers
	s.claim = s.store(claim)
	known := newKnown()
	known.hear(s.server)
	s.writes = newWrites(t, s.prompt(), known, clock.RealClock{}, func(Outcome) {})
	return s
}

// bind binds the pods at the same time and returns one error for each pod.
func (s *sharing) bind(ctx context.Context, chosen *resourceapi.AllocationResult, pods ...string) []error {
	errs := make([]error, len(pods))
	var all, bound sync.WaitGroup
	bound.Add(len(pods))
	for i, pod := range pods {
		all.Go(func() {
			ctx, end := s.writes.Binding(ctx)
			defer end()
			defer bound.Wait()
			defer bound.Done()
			if errs[i] = bindPod(ctx, s.writes.Client(), s.claim, chosen, pod); errs[i] != nil {
				end()
			}
		})
	}
	all.Wait()
	return errs
}

func (s *sharing) reservedFor() (pods []string) {
	for _, r := range s.stored["shared"].Status.ReservedFor {
		pods = append(pods, r.Name)
	}
	slices.Sort(pods)
	return pods
}

func podNames(n int) (pods []string) {
	for i := range n {
		pods = append(pods, fmt.Sprintf("pod-%03d", i))
	}
	return pods
}

// TestPodsShareAClaim binds pods that share a claim. No binding may fail because another pod's binding wrote the claim first.
func TestPodsShareAClaim(t *testing.T) {
	pods := podNames(100)
	t.Run("unallocated", func(t *testing.T) {
		s := newSharing(t)
		for _, err := range s.bind(t.Context(), allocationOf("a"), pods...) {
			require.NoError(t, err)
		}
		require.Equal(t, pods, s.reservedFor())
		require.Equal(t, allocationOf("a"), s.stored["shared"].Status.Allocation)
		require.LessOrEqual(t, s.version, 102, "the claim, the finalizer and a write for each pod")
		require.Zero(t, s.gets)
		require.Empty(t, s.writes.turns.byClaim)
	})
	t.Run("allocated", func(t *testing.T) {
		s := newSharing(t, resourceapi.Finalizer)
		s.claim.Status.Allocation = allocationOf("a")
		s.claim = s.store(s.claim)
		for _, err := range s.bind(t.Context(), nil, pods...) {
			require.NoError(t, err)
		}
		require.Equal(t, pods, s.reservedFor())
		require.Zero(t, s.gets)
	})
	t.Run("written by others", func(t *testing.T) {
		s := newSharing(t)
		for _, pod := range pods[:10] {
			// Meanwhile a controller changes the claim, and the API server changes the format of driver parameters.
			changed := s.stored["shared"].DeepCopy()
			changed.Annotations = map[string]string{"seen": pod}
			if changed.Status.Allocation != nil {
				changed.Status.Allocation.Devices.Config[0].Opaque.Parameters.Raw = []byte(`{"a":1}`)
				changed.Status.Allocation.AllocationTimestamp = &metav1.Time{}
			}
			s.store(changed)
			require.NoError(t, errors.Join(s.bind(t.Context(), allocationOf("a"), pod)...))
		}
		require.Equal(t, pods[:10], s.reservedFor())
		require.Equal(t, pods[9], s.stored["shared"].Annotations["seen"])
	})
	t.Run("lost answer", func(t *testing.T) {
		s := newSharing(t)
		s.next = answerLost
		failed := 0
		for _, err := range s.bind(t.Context(), allocationOf("a"), pods[:5]...) {
			if err != nil {
				failed++
			}
		}
		require.Equal(t, 1, failed)
		require.Equal(t, pods[:5], s.reservedFor())
	})
}

// TestAllocatedElsewhere checks that an allocation by another scheduler is not replaced. Pods with other chosen devices must
// fail without a reservation.
func TestAllocatedElsewhere(t *testing.T) {
	for _, meanwhile := range []string{"with a finalizer", "without"} {
		s := newSharing(t)
		changed := s.claim.DeepCopy()
		changed.Status.Allocation = allocationOf("b")
		if meanwhile == "with a finalizer" {
			changed.Finalizers = []string{resourceapi.Finalizer}
		}
		s.store(changed)
		for _, err := range s.bind(t.Context(), allocationOf("a"), podNames(5)...) {
			require.ErrorIs(t, err, errElsewhere)
		}
		require.Equal(t, allocationOf("b"), s.stored["shared"].Status.Allocation)
		require.Empty(t, s.reservedFor())
	}
}

// TestWaitingForTheTurnEnds checks a binding whose context ends while it waits for a turn. Another binding must then get the
// turn.
func TestWaitingForTheTurnEnds(t *testing.T) {
	s := newSharing(t)
	first, end := s.writes.Binding(t.Context())
	require.NoError(t, bindingIn(first).enter(first, s.claim.UID))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, errors.Join(s.bind(over, allocationOf("a"), "late")...), context.Canceled)
	end()
	require.NoError(t, errors.Join(s.bind(t.Context(), allocationOf("a"), "next")...))
	require.Equal(t, []string{"next"}, s.reservedFor())
	require.Empty(t, s.writes.turns.byClaim)
}

// TestSharedClaimKeepsItsAllocation changes a shared claim in random ways while pods are bound. The allocation must never be
// replaced, and exactly the bound pods must have reservations.
func TestSharedClaimKeepsItsAllocation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSharing(t)
		bound, gone := map[string]bool{}, false
		for i := range rapid.IntRange(1, 12).Draw(t, "steps") {
			before := s.stored["shared"].DeepCopy()
			switch rapid.SampledFrom([]string{"bind", "bind", "bind several", "label", "allocate elsewhere", "deallocate", "delete"}).Draw(t, "what") {
			case "label":
				before.Labels = map[string]string{"i": fmt.Sprint(i)}
				s.store(before)
			case "allocate elsewhere":
				if before.Status.Allocation == nil {
					before.Status.Allocation, before.Finalizers = allocationOf("b"), []string{resourceapi.Finalizer}
					s.store(before)
				}
			case "deallocate":
				before.Status, bound = resourceapi.ResourceClaimStatus{}, map[string]bool{}
				s.store(before)
			case "delete":
				before.DeletionTimestamp, gone = &metav1.Time{}, true
				s.store(before)
			default:
				pods := podNames(rapid.IntRange(1, 3).Draw(t, "pods"))
				for j := range pods {
					pods[j] = fmt.Sprint(pods[j], "-", i)
				}
				if rapid.IntRange(0, 3).Draw(t, "conflict") == 0 {
					s.next = conflict
				}
				for j, err := range s.bind(context.Background(), allocationOf("a"), pods...) {
					if err == nil {
						bound[pods[j]] = true
					}
					require.True(t, err == nil || errors.Is(err, errElsewhere) || errors.Is(err, errDeleted) || apierrors.IsConflict(err), "%v", err)
					require.False(t, err == nil && gone)
				}
				after := s.stored["shared"].Status.Allocation
				if before.Status.Allocation != nil {
					require.Equal(t, before.Status.Allocation, after)
				}
			}
			require.Len(t, s.reservedFor(), len(bound))
			for _, pod := range s.reservedFor() {
				require.True(t, bound[pod])
			}
		}
	})
}
