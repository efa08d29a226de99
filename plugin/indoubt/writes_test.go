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
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk has a scheduler's writes, its list of claims and the API server.
type desk struct {
	*Writes
	*server
	known     known
	clock     *clocktesting.FakeClock
	outcomes  []Outcome
	activated []string
}

func newDesk(t interface{ Cleanup(func()) }) *desk {
	d := &desk{
		server: &server{stored: map[string]*resourceapi.ResourceClaim{}}, known: known{},
		clock: clocktesting.NewFakeClock(time.Unix(0, 0)),
	}
	d.Writes = New(d.server.client(), func(claim *resourceapi.ResourceClaim) error { return d.known.assume(claim) },
		d.clock, func(outcome Outcome) { d.outcomes = append(d.outcomes, outcome) })
	t.Cleanup(func() { d.queue.ShutDown() })
	return d
}

// created is a claim that the scheduler knows of.
func (d *desk) created(name string) *resourceapi.ResourceClaim {
	claim := d.create(name)
	d.known.hear(d.server)
	return claim
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
		then      func(*desk, *resourceapi.ResourceClaim)
		doubtful  bool
		want      []Outcome
		allocated bool
	}{
		"told":             {},
		"refused":          {fate: refused},
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
		"not known of yet": {fate: answerLost, doubtful: true, then: func(d *desk, claim *resourceapi.ResourceClaim) {
			delete(d.known, claim.Name)
		}},
		"known of already": {fate: answerLost, doubtful: true, want: []Outcome{Stored}, allocated: true, then: func(d *desk, _ *resourceapi.ResourceClaim) {
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
			require.Equal(t, test.want != nil, none)
			require.EqualValues(t, len(test.want), d.Ends())
			if test.want == nil {
				require.Equal(t, []string{"1", "2"}, d.from(""), "it is in doubt as before")
				require.Empty(t, d.activated)
				return
			}
			require.Empty(t, d.from(""))
			require.Equal(t, []string{"other"}, d.activated)
			require.Equal(t, test.allocated, d.known["claim"].Status.Allocation != nil)
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
	late, unknown := d.created("late"), d.create("unknown")
	d.store(with(late, "1"))
	d.store(with(unknown, "2"))
	d.created("free")
	d.readFails = 1
	require.ErrorIs(t, d.CatchUp(t.Context()), io.ErrUnexpectedEOF)
	delete(d.known, "unknown")
	require.NoError(t, d.CatchUp(t.Context()))
	require.Equal(t, []string{"1"}, namesOf(d.known["late"].Status.Allocation.Devices.Results))
	require.Equal(t, []string{"2"}, d.from(""), "nothing can be assumed of a claim that is not known of")

	none, err := d.settle(t.Context(), unknown.UID)
	require.Error(t, err)
	require.False(t, none)
	d.known["unknown"] = unknown
	none, err = d.settle(t.Context(), unknown.UID)
	require.NoError(t, err)
	require.True(t, none)
	require.Equal(t, []string{"2"}, namesOf(d.known["unknown"].Status.Allocation.Devices.Results))

	d.readFails = 1
	require.NoError(t, d.CatchUp(t.Context()), "it is done once")
}

// TestRun looks at what is in doubt until it is known.
func TestRun(t *testing.T) {
	d := newDesk(t)
	claim := d.created("claim")
	d.readFails = 2
	_, err := d.writeAs(t.Context(), answerLost, with(claim, "1"))
	require.Error(t, err)
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
