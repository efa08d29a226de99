// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package indoubt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk has a scheduler's writes, its list of claims and the API server.
type desk struct {
	*Writes
	*server
	known     *known
	clock     *clocktesting.FakeClock
	outcomes  []Outcome
	activated []string
}

func newDesk(t interface{ Cleanup(func()) }) *desk {
	d := &desk{
		server: &server{stored: map[string]*resourceapi.ResourceClaim{}}, known: newKnown(),
		clock: clocktesting.NewFakeClock(time.Unix(0, 0)),
	}
	d.Writes = New(d.server.client(), func(claim *resourceapi.ResourceClaim) error { return d.known.assume(claim) },
		d.known, d.clock, func(outcome Outcome) { d.outcomes = append(d.outcomes, outcome) })
	t.Cleanup(func() { d.queue.ShutDown() })
	return d
}

// created is a claim that the scheduler knows of.
func (d *desk) created(name string) *resourceapi.ResourceClaim {
	claim := d.create(name)
	d.hearAll()
	return claim
}

func (d *desk) hearAll() {
	for range len(d.told) - d.known.heard {
		d.known.hear(d.server)
	}
}

func (d *desk) hearIf(is bool) {
	if is {
		d.hearAll()
	}
}

// writeAs writes an allocation, which meets the fate.
func (d *desk) writeAs(ctx context.Context, how fate, claim *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	d.next = how
	ctx = klog.NewContext(ctx, logr.Discard())
	return d.Client().ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
}

// from are the devices kept from a pod that has a claim of its own to allocate.
func (d *desk) from(own types.UID) []string {
	return namesOf(d.From(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other"}}, own, func(pod *v1.Pod) { d.activated = append(d.activated, pod.Name) }))
}

func TestWhatBecomesOfAWrite(t *testing.T) {
	for name, test := range map[string]struct {
		fate fate
		// then is what happens before it is looked at.
		then     func(*desk, *resourceapi.ResourceClaim)
		doubtful bool
		want     []Outcome
		// allocated tells that it is stored, and heard that the watch has told of that.
		allocated, heard bool
	}{
		"told":             {},
		"refused":          {fate: refused},
		"not sent":         {fate: notSent},
		"answer lost":      {fate: answerLost, doubtful: true, want: []Outcome{Stored}, allocated: true},
		"request late":     {fate: requestLate, doubtful: true, want: []Outcome{NotStored}},
		"can't be changed": {fate: requestLate, doubtful: true, then: func(d *desk, _ *resourceapi.ResourceClaim) { d.fences = requestLate }},
		"given up": {fate: requestLate, doubtful: true, want: []Outcome{GivenUp}, then: func(d *desk, _ *resourceapi.ResourceClaim) {
			d.fences = requestLate
			d.clock.Step(untilGivenUp + 1)
		}},
		"not given up yet": {fate: requestLate, doubtful: true, then: func(d *desk, _ *resourceapi.ResourceClaim) {
			d.fences = requestLate
			d.clock.Step(untilGivenUp)
		}},
		"written by others": {fate: requestLate, doubtful: true, want: []Outcome{NotStored}, then: func(d *desk, claim *resourceapi.ResourceClaim) {
			d.store(claim)
		}},
		"carried out late": {fate: requestLate, doubtful: true, want: []Outcome{Stored}, allocated: true, then: func(d *desk, _ *resourceapi.ResourceClaim) {
			_, _ = d.apply(d.late[0])
		}},
		"gone":       {fate: answerLost, doubtful: true, want: []Outcome{Gone}, then: func(d *desk, claim *resourceapi.ResourceClaim) { d.remove(claim.Name) }},
		"made anew":  {fate: answerLost, doubtful: true, want: []Outcome{Gone}, then: func(d *desk, claim *resourceapi.ResourceClaim) { d.create(claim.Name) }},
		"no answers": {fate: answerLost, doubtful: true, then: func(d *desk, _ *resourceapi.ResourceClaim) { d.readFails = 1 }},
		"not known of yet": {fate: answerLost, doubtful: true, want: []Outcome{Stored}, allocated: true, then: func(d *desk, claim *resourceapi.ResourceClaim) {
			delete(d.known.claims, claim.Name)
		}},
		"heard of already": {fate: answerLost, doubtful: true, want: []Outcome{Stored}, heard: true, then: func(d *desk, _ *resourceapi.ResourceClaim) {
			d.known.hear(d.server)
		}},
		"conflict":  {fate: conflict, doubtful: true, then: func(d *desk, claim *resourceapi.ResourceClaim) { d.store(claim) }, want: []Outcome{NotStored}},
		"throttled": {fate: throttled, doubtful: true, want: []Outcome{NotStored}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			claim := d.created("claim")
			_, err := d.writeAs(t.Context(), test.fate, with(claim, "1", "2"))
			require.Equal(t, test.fate != told, err != nil)
			d.hearIf(test.fate == told)
			if !test.doubtful {
				require.Empty(t, d.from(""))
				require.Zero(t, d.queue.Len())
				require.False(t, d.Any())
				return
			}
			require.Equal(t, []string{"1", "2"}, d.from(""))
			require.True(t, d.Any())
			require.Equal(t, 1, d.queue.Len(), "it is looked at")
			require.Empty(t, d.from(claim.UID), "it may have again what it may have")
			if test.then != nil {
				test.then(d, claim)
			}
			none, _ := d.settle(t.Context(), claim.UID)
			require.Equal(t, test.want, d.outcomes)
			require.EqualValues(t, len(test.want), d.Ends())
			if test.want == nil {
				require.False(t, none)
				require.Equal(t, []string{"1", "2"}, d.from(""), "it is in doubt as before")
				require.Empty(t, d.activated)
				return
			}
			require.Equal(t, []string{"other"}, d.activated)
			if test.allocated {
				require.Equal(t, []string{"1", "2"}, d.from(""), "until the watch tells of it")
				d.hearAll()
			}
			require.Empty(t, d.from(""))
			require.Equal(t, test.allocated || test.heard, d.known.claims["claim"] != nil && d.known.claims["claim"].Status.Allocation != nil)
			none, err = d.settle(t.Context(), claim.UID)
			require.NoError(t, err)
			require.True(t, none)
		})
	}
}

// TestFence: a claim without devices is changed, so that what was sent is refused when it comes.
func TestFence(t *testing.T) {
	d := newDesk(t)
	claim := d.created("claim")
	_, err := d.writeAs(t.Context(), requestLate, with(claim, "1"))
	require.Error(t, err)
	d.fences = answerLost
	none, err := d.settle(t.Context(), claim.UID)
	require.ErrorContains(t, err, "change claim default/claim so that its allocation can't be stored any more: unexpected EOF")
	require.False(t, none, "whether it was changed is not known either")
	none, err = d.settle(t.Context(), claim.UID)
	require.NoError(t, err)
	require.True(t, none)
	require.Equal(t, []Outcome{NotStored}, d.outcomes)
	require.Equal(t, []string{"example.com/other"}, d.stored["claim"].Finalizers)
	_, err = d.apply(d.late[0])
	require.True(t, apierrors.IsConflict(err))

	// Without the finalizer there is nothing to change.
	claim = d.stored["claim"].DeepCopy()
	_, err = d.writeAs(t.Context(), requestLate, with(claim, "1"))
	require.Error(t, err)
	none, err = d.settle(t.Context(), claim.UID)
	require.NoError(t, err)
	require.False(t, none)
	d.clock.Step(untilGivenUp + 1)
	none, _ = d.settle(t.Context(), claim.UID)
	require.True(t, none)
	require.Equal(t, []Outcome{NotStored, GivenUp}, d.outcomes)
}

// TestALaterWriteEndsTheDoubt: of two writes of the same version one is stored at most.
func TestALaterWriteEndsTheDoubt(t *testing.T) {
	d := newDesk(t)
	claim := d.created("claim")
	_, err := d.writeAs(t.Context(), requestLate, with(claim, "1"))
	require.Error(t, err)
	_, err = d.writeAs(t.Context(), requestLate, with(claim, "1"))
	require.Error(t, err)
	require.Equal(t, []string{"1"}, d.from(""), "twice the same is once")
	_, err = d.writeAs(t.Context(), requestLate, with(claim, "2"))
	require.Error(t, err)
	require.Equal(t, []string{"1", "2"}, d.from(""))
	_, err = d.writeAs(t.Context(), told, with(claim, "3"))
	require.NoError(t, err)
	require.Equal(t, []string{"3"}, d.from(""))
	d.hearAll()
	require.Empty(t, d.from(""))
	require.Equal(t, []Outcome{NotStored, NotStored}, d.outcomes)
	for _, late := range d.late {
		_, err = d.apply(late)
		require.True(t, apierrors.IsConflict(err))
	}
	require.Equal(t, []string{"3"}, namesOf(d.stored["claim"].Status.Allocation.Devices.Results))
}

// TestOneClaimHasABound: what a claim keeps from others, and what is remembered of it, ends somewhere.
func TestOneClaimHasABound(t *testing.T) {
	d := newDesk(t)
	claim := d.created("claim")
	for i := range maxAttempts {
		_, err := d.writeAs(t.Context(), requestLate, with(claim, fmt.Sprint(i)))
		require.Error(t, err)
	}
	writes := d.writes
	_, err := d.writeAs(t.Context(), told, with(claim, "one more"))
	require.EqualError(t, err, "it is not known what became of 64 earlier allocations of claim default/claim: it is written again when the API server has answered")
	require.Equal(t, writes, d.writes, "nothing was sent")
	require.Len(t, d.from(""), maxAttempts)

	for i := range maxWaiting + 10 {
		d.From(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}}, "", func(*v1.Pod) { d.activated = append(d.activated, "") })
	}
	d.remove("claim")
	_, err = d.settle(t.Context(), claim.UID)
	require.NoError(t, err)
	require.Len(t, d.activated, maxWaiting)
}

func TestNothingButAllocationsIsLookedAt(t *testing.T) {
	d := newDesk(t)
	_, err := d.writeAs(t.Context(), answerLost, d.created("claim"))
	require.Error(t, err)
	require.Empty(t, d.from(""))
}

// TestCatchUp: an earlier leader has written what the watch has not told.
func TestCatchUp(t *testing.T) {
	d := newDesk(t)
	heard, late := d.created("heard"), d.created("late")
	d.store(with(heard, "0"))
	d.hearAll()
	d.store(with(late, "1"))
	unknown := d.create("unknown")
	d.store(with(unknown, "2"))
	d.readFails = 1
	require.ErrorIs(t, d.CatchUp(t.Context()), io.ErrUnexpectedEOF)
	require.NoError(t, d.CatchUp(t.Context()))
	require.Equal(t, []string{"1"}, namesOf(d.known.claims["late"].Status.Allocation.Devices.Results), "it is assumed")
	require.Equal(t, []string{"1", "2"}, d.from(""), "until the watch has told of them")

	none, err := d.settle(t.Context(), unknown.UID)
	require.NoError(t, err)
	require.False(t, none)
	d.hearAll()
	none, err = d.settle(t.Context(), unknown.UID)
	require.NoError(t, err)
	require.True(t, none)
	require.Empty(t, d.from(""))

	d.readFails = 1
	require.NoError(t, d.CatchUp(t.Context()), "it is done once")
}

// TestStoredAndNotHeard: an allocation is stored, and the watch has not told of it. Upstream's plugin may have had
// the scheduler's list say so, or given it up because the pod is gone.
func TestStoredAndNotHeard(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*desk)
		none bool
	}{
		"the watch is late":  {then: func(*desk) {}},
		"it is assumed":      {then: func(d *desk) { require.NoError(t, d.known.assume(d.stored["claim"])) }},
		"the watch has told": {then: func(d *desk) { d.hearAll() }, none: true},
		"it has no devices any more": {none: true, then: func(d *desk) {
			claim := d.stored["claim"].DeepCopy()
			claim.Status.Allocation = nil
			d.store(claim)
		}},
		"it is gone":       {then: func(d *desk) { d.remove("claim") }, none: true},
		"it was made anew": {then: func(d *desk) { d.remove("claim"); d.create("claim") }, none: true},
		"nobody answers":   {then: func(d *desk) { d.readFails = 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			claim := d.create("claim")
			d.known.hear(d.server)
			_, err := d.writeAs(t.Context(), told, with(claim, "1"))
			require.NoError(t, err)
			require.Equal(t, []string{"1"}, d.from(""))
			test.then(d)
			none, _ := d.settle(t.Context(), claim.UID)
			require.Equal(t, test.none, none)
			require.Equal(t, test.none, !d.Any())
			require.Empty(t, d.outcomes, "nothing was in doubt")
			if test.none {
				require.EqualValues(t, 1, d.Ends())
			} else {
				require.Equal(t, []string{"1"}, d.from(""))
			}
		})
	}
}

// TestCheck: a watch has missed that a device went from one claim to another one. What comes of that takes it for
// free, though the claim is known that has it.
func TestCheck(t *testing.T) {
	d := newDesk(t)
	d.store(with(d.created("first"), "1"))
	second, third := d.created("second"), d.created("third")
	require.True(t, d.known.listed.Has("1"))
	d.remove("first")
	d.store(with(second, "1"))
	d.known.relist(d.server)
	require.False(t, d.known.listed.Has("1"), "upstream takes it for free")
	require.NoError(t, d.Check(third), "it gets nothing")
	require.NoError(t, d.Check(with(third, "2")))
	require.NoError(t, d.Check(with(second, "1")), "it is its own")
	require.False(t, d.Any())
	require.EqualError(t, d.Check(with(third, "2", "1")),
		"device d/p/1 was about to go to claim default/third, but claim default/second has it: it is tried again with another one")
	require.Equal(t, []string{"1"}, d.from(""), "nobody gets it from now on")
	require.Empty(t, d.from(second.UID))
	d.remove("second")
	d.hearAll()
	require.Empty(t, d.from(""))
	require.False(t, d.Any())

	shared := with(third, "2")
	shared.Status.Allocation.Devices.Results[0].AdminAccess = new(true)
	d.store(with(d.created("fourth"), "2"))
	d.hearAll()
	require.NoError(t, d.Check(shared), "who administers a device takes it from nobody")

	// Also what is stored and not heard of.
	fifth := d.created("fifth")
	_, err := d.writeAs(t.Context(), told, with(fifth, "3"))
	require.NoError(t, err)
	require.ErrorContains(t, d.Check(with(third, "3")), "claim default/fifth has it")
}

// TestIndex looks up claims in an informer's store.
func TestIndex(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Resource().V1().ResourceClaims().Informer()
	heard, err := Index(informer)
	require.NoError(t, err)
	one, other := with((&server{stored: map[string]*resourceapi.ResourceClaim{}}).create("one"), "1", "2"), &resourceapi.ResourceClaim{}
	other.Namespace, other.Name = "default", "other"
	require.NoError(t, informer.GetIndexer().Add(one))
	require.NoError(t, informer.GetIndexer().Add(other))
	require.Equal(t, []*resourceapi.ResourceClaim{one}, heard.With("d/p/2"))
	require.Empty(t, heard.With("d/p/3"))
	require.Same(t, one, heard.Get("default", "one"))
	require.Nil(t, heard.Get("default", "two"))
	_, err = Index(informer)
	require.ErrorContains(t, err, "look up ResourceClaims by their devices: ")
}

// TestRun looks at what is in doubt until it is known.
func TestRun(t *testing.T) {
	d := newDesk(t)
	claim := d.created("claim")
	d.readFails = 2
	_, err := d.writeAs(t.Context(), answerLost, with(claim, "1"))
	require.Error(t, err)
	d.remove("claim")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	require.Eventually(t, func() bool { return d.Ends() == 1 }, time.Minute, time.Millisecond)
	cancel()
	<-ended
	require.Equal(t, 3, d.gets)
	require.True(t, d.end(claim.UID, 1, func(attempt) (Outcome, bool) { return Gone, true }), "nothing is left to end")
}

func TestMayBeStored(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"nobody there":       {fmt.Errorf("put: %w", dial), false},
		"connection broken":  {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, true},
		"end of file":        {io.EOF, true},
		"time over":          {context.DeadlineExceeded, true},
		"invalid":            {apierrors.NewInvalid(schema.GroupKind{}, "claim", nil), false},
		"not found":          {apierrors.NewNotFound(claimsResource, "claim"), false},
		"forbidden":          {apierrors.NewForbidden(claimsResource, "claim", nil), false},
		"internal error":     {apierrors.NewInternalError(errors.New("etcd")), true},
		"gateway timeout":    {apierrors.NewTimeoutError("slow", 0), true},
		"unavailable":        {apierrors.NewServiceUnavailable("later"), true},
		"conflict":           {apierrors.NewConflict(claimsResource, "claim", nil), true},
		"too many requests":  {apierrors.NewTooManyRequests("later", 1), true},
		"no error of theirs": {&apierrors.StatusError{}, true},
		"webhook refuses": {webhookerrors.ToStatusErr("guard", &metav1.Status{
			Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: "no guard is active",
		}), false},
		"webhook is down": {apierrors.NewInternalError(&webhookutil.ErrCallingWebhook{WebhookName: "guard", Reason: io.EOF}), false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, mayBeStored(test.err)) })
	}
}

// An answer that arrives after that to a later write says nothing: the claim has other devices since.
func TestOlderAnswersSayNothing(t *testing.T) {
	d := newDesk(t)
	first, err := d.writeAs(t.Context(), told, with(d.created("claim"), "1"))
	require.NoError(t, err)
	without := d.stored["claim"].DeepCopy()
	without.Status.Allocation = nil
	second, err := d.writeAs(t.Context(), told, with(d.store(without), "2"))
	require.NoError(t, err)
	require.Equal(t, []string{"2"}, d.from(""))

	// So is a read of before.
	d.keepUntilHeard(first)
	require.Equal(t, []string{"2"}, d.from(""))
	d.keepUntilHeard(second)
	require.Equal(t, []string{"2"}, d.from(""))
}
