// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The pods of a group may share a claim. They are bound at the same time, and upstream's plugin begins each binding with
// the claim as it was before the group was scheduled. So all pods but one run into a conflict, read the claim, and fail
// because the claim has devices: the very devices that were chosen for the group (kubernetes/kubernetes#140053).
//
// The client lets pods of one scheduler write a claim one after the other:
//
//  1. The first request of a binding waits for its turn at the claim. The turn ends with the write of the status, or with
//     the binding.
//  2. A request that was made for an older version of the claim is changed to the latest version that is known. A
//     reservation is added to the reservations of that version.
//  3. After a conflict the claim is read, and the request is made again for the version that was read.
//
// Invariant: an allocation is sent only for a version without one, or with the same one. In all other cases the request
// ends with a conflict, and upstream's plugin reads the claim and decides.

// maxConflicts is how often a write is repeated after conflicts with other writers than this scheduler.
const maxConflicts = 5

// bindingKey is where a context has the binding for which claims are written.
type bindingKey struct{}

// binding is the binding of one pod. It is used by one goroutine.
type binding struct {
	writes *Writes
	// turns are those of the claims that it has written or waited for. Each counts the binding as a user until it ends.
	// By then the scheduler's list has what was written.
	turns map[types.UID]*turn
	// held is the turn that this binding has, nil for none.
	held *turn
}

// turn is the right to write a claim that several bindings wait for.
type turn struct {
	// taken has an element while a binding has the turn.
	taken chan struct{}
	// users counts the bindings that have or had the turn, or wait for it, and have not ended.
	users int
	// latest is the latest version that one of them has read or written, nil if there is none. It is guarded by the turn.
	latest *resourceapi.ResourceClaim
}

// claimTurns has a turn for each claim that is being bound.
type claimTurns struct {
	mutex   sync.Mutex
	byClaim map[types.UID]*turn
}

// Binding returns a context for the binding of one pod, with which [Writes.Client] writes claims that other pods are bound
// to at the same time. end ends the binding.
func (w *Writes) Binding(ctx context.Context) (binds context.Context, end func()) {
	b := &binding{writes: w, turns: map[types.UID]*turn{}}
	return context.WithValue(ctx, bindingKey{}, b), b.end
}

// bindingIn is nil outside of a binding.
func bindingIn(ctx context.Context) *binding {
	b, _ := ctx.Value(bindingKey{}).(*binding)
	return b
}

// enter waits for the turn of a claim. The error is that of the context.
func (b *binding) enter(ctx context.Context, uid types.UID) error {
	t := b.turns[uid]
	if t == nil {
		t = b.writes.turns.join(uid)
		b.turns[uid] = t
	}
	if b.held == t {
		return nil
	}
	b.leave()
	select {
	case t.taken <- struct{}{}:
		b.held = t
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *binding) leave() {
	if b.held != nil {
		<-b.held.taken
		b.held = nil
	}
}

func (b *binding) end() {
	b.leave()
	for uid := range b.turns {
		b.writes.turns.quit(uid)
	}
	clear(b.turns)
}

func (t *claimTurns) join(uid types.UID) *turn {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.byClaim[uid] == nil {
		t.byClaim[uid] = &turn{taken: make(chan struct{}, 1)}
	}
	t.byClaim[uid].users++
	return t.byClaim[uid]
}

func (t *claimTurns) quit(uid types.UID) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.byClaim[uid].users--; t.byClaim[uid].users == 0 {
		delete(t.byClaim, uid)
	}
}

// note keeps a version of the claim whose turn the binding has.
func (b *binding) note(claim *resourceapi.ResourceClaim) {
	if b.held.latest == nil || isOlder(b.held.latest.ResourceVersion, claim.ResourceVersion) {
		b.held.latest = claim
	}
}

// latest returns the latest version of a claim that is known, nil if it is older than the given one.
func (b *binding) latest(than *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	known, err := b.writes.config.Tracker.Get(than.Namespace, than.Name)
	if err == nil && known.UID == than.UID {
		b.note(known)
	}
	if b.held.latest == nil || isOlder(b.held.latest.ResourceVersion, than.ResourceVersion) {
		return nil
	}
	return b.held.latest
}

// read reads a claim after a conflict, nil if it is gone or can't be read.
func (b *binding) read(ctx context.Context, from claims, claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	got, err := from.Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil || got.UID != claim.UID {
		return nil
	}
	b.note(got)
	return got
}

// addFinalizer adds the finalizer of allocated claims. It returns a later version that has the finalizer if there is one.
func (b *binding) addFinalizer(ctx context.Context, to claims, sent *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if err := b.enter(ctx, sent.UID); err != nil {
		return nil, err
	}
	if latest := b.latest(sent); hasFinalizer(latest) {
		return latest.DeepCopy(), nil
	}
	got, err := to.ResourceClaimInterface.Update(ctx, sent, opts)
	switch {
	case err == nil:
		// Upstream's plugin changes what it gets.
		b.note(got.DeepCopy())
	case apierrors.IsConflict(err):
		if latest := b.read(ctx, to, sent); hasFinalizer(latest) {
			return latest.DeepCopy(), nil
		}
	}
	return got, err
}

func hasFinalizer(claim *resourceapi.ResourceClaim) bool {
	return claim != nil && claim.DeletionTimestamp == nil && slices.Contains(claim.Finalizers, resourceapi.Finalizer)
}

// updateStatus writes an allocation, a reservation or both.
func (b *binding) updateStatus(ctx context.Context, to claims, sent *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if err := b.enter(ctx, sent.UID); err != nil {
		return nil, err
	}
	defer b.leave()
	for conflicts := 0; ; conflicts++ {
		next := sent
		if latest := b.latest(sent); latest != nil && latest.Status.Allocation != nil {
			if latest.DeletionTimestamp != nil || !isSameAllocation(latest.Status.Allocation, sent.Status.Allocation) {
				return nil, apierrors.NewConflict(resourceapi.Resource("resourceclaims"), sent.Name, errChanged)
			}
			if next = withReservation(latest, sent); next == nil {
				return latest.DeepCopy(), nil
			}
		}
		got, err := to.store(ctx, next, opts)
		if err == nil {
			b.note(got.DeepCopy())
			return got, nil
		}
		if !apierrors.IsConflict(err) || conflicts == maxConflicts {
			return got, err
		}
		if latest := b.read(ctx, to, sent); latest == nil || latest.Status.Allocation == nil || latest.ResourceVersion == next.ResourceVersion {
			// Upstream's plugin decides what comes next.
			return got, err
		}
	}
}

// withReservation returns the latest version with the reservation that was added last to what is sent, nil if it has that
// reservation.
func withReservation(latest, sent *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	next := latest.DeepCopy()
	if len(sent.Status.ReservedFor) == 0 {
		return next
	}
	added := sent.Status.ReservedFor[len(sent.Status.ReservedFor)-1]
	if slices.ContainsFunc(next.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool { return r.UID == added.UID }) {
		return nil
	}
	next.Status.ReservedFor = append(next.Status.ReservedFor, added)
	return next
}

// isSameAllocation compares allocations, one of which may have been written and read. The time of the allocation is that
// of the write, and the API server may write parameters of drivers in another way.
func isSameAllocation(a, b *resourceapi.AllocationResult) bool {
	return a != nil && b != nil && equality.Semantic.DeepEqual(normalized(a), normalized(b))
}

func normalized(allocation *resourceapi.AllocationResult) *resourceapi.AllocationResult {
	result := allocation.DeepCopy()
	result.AllocationTimestamp = nil
	for i := range result.Devices.Config {
		if opaque := result.Devices.Config[i].Opaque; opaque != nil {
			var compact bytes.Buffer
			if raw, err := opaque.Parameters.MarshalJSON(); err == nil && json.Compact(&compact, raw) == nil {
				opaque.Parameters.Raw, opaque.Parameters.Object = compact.Bytes(), nil
			}
		}
	}
	return result
}
