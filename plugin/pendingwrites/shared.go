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

// The pods of a group may share a claim. They are bound at the same time, and upstream's plugin starts each binding with the
// version of the claim from before the scheduling. So all pods but one get a conflict and read the claim. They fail because the
// claim has the devices that were chosen for the group (kubernetes/kubernetes#140053).
//
// The client makes the pods of one scheduler write a claim one after the other:
//
//   1. The first request of a binding for a claim waits until no other binding writes the claim: it takes the turn of the
//      claim. The turn ends with the write of the status, or with the binding.
//   2. A request for an older version of the claim is changed to the latest version that the scheduler has. Its reservation is
//      added to the reservations of that version.
//   3. After a conflict the claim is read, and the request is repeated for the new version.
//
// Invariant: an allocation is sent only for a version without an allocation or with the same one. Otherwise the request ends
// with a conflict, and upstream's plugin reads the claim and decides.

// maxConflicts is how often a write is repeated after conflicts with other writers than this scheduler.
const maxConflicts = 5

// bindingKey is the context key for the *binding.
type bindingKey struct{}

// binding is the binding of one pod. Only one goroutine uses it.
type binding struct {
	writes *Writes
	// turns has the turns that the binding has, had or waits for. The binding counts as a user of these turns until it ends.
	// When the binding ends, the scheduler's list of claims has the versions that the binding wrote.
	turns map[types.UID]*turn
	// held is the turn that the binding has now, or nil.
	held *turn
}

// turn is the right to write one claim. One binding has it at a time, and several bindings may wait for it.
type turn struct {
	// taken has an element while a binding has the turn.
	taken chan struct{}
	// users counts the bindings in progress that have this turn, had it, or wait for it.
	users int
	// latest is the latest version of the claim that these bindings have read or written, or nil. Only the binding that has the
	// turn may read or set it.
	latest *resourceapi.ResourceClaim
}

// claimTurns has a turn for each claim of the pods that are being bound.
type claimTurns struct {
	mutex   sync.Mutex
	byClaim map[types.UID]*turn
}

// Binding returns a context for the binding of one pod. With this context, [Writes.Client] can write claims even if other pods
// of the same claims are bound at the same time. end ends the binding.
func (w *Writes) Binding(ctx context.Context) (binds context.Context, end func()) {
	b := &binding{writes: w, turns: map[types.UID]*turn{}}
	return context.WithValue(ctx, bindingKey{}, b), b.end
}

// bindingIn returns the binding in a context, or nil.
func bindingIn(ctx context.Context) *binding {
	b, _ := ctx.Value(bindingKey{}).(*binding)
	return b
}

// enter waits until the binding has the turn of a claim. It returns an error only if ctx is done first.
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

// note stores a version of the claim in the turn, unless the turn has a later version. The binding must have the turn.
func (b *binding) note(claim *resourceapi.ResourceClaim) {
	if b.held.latest == nil || isOlder(b.held.latest.ResourceVersion, claim.ResourceVersion) {
		b.held.latest = claim
	}
}

// latest returns the latest version of the claim that the scheduler has. It returns nil if that version is older than the
// version in than.
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

// read reads a claim from the API server after a conflict. It returns nil if the claim is gone or can't be read.
func (b *binding) read(ctx context.Context, from claims, claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	got, err := from.Get(ctx, claim.Name, metav1.GetOptions{})
	if err != nil || got.UID != claim.UID {
		return nil
	}
	b.note(got)
	return got
}

// addFinalizer adds the finalizer of allocated claims. If another binding has already added it, addFinalizer returns that
// version of the claim.
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
		// Upstream's plugin modifies the returned claim, so the turn gets a copy.
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

// updateStatus waits for the claim's turn. Then it writes the allocation, the reservation for the pod, or both.
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
			// After this conflict upstream's plugin must read the claim and decide.
			return got, err
		}
	}
}

// withReservation returns a copy of latest to which the newest reservation in sent is added. It returns nil if latest already
// has this reservation.
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

// isSameAllocation compares an allocation as written with an allocation as read. It ignores the timestamp, which each write
// sets, and the format of driver parameters, which the API server may change.
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
