// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/internal/testing/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk has the Writes and the claims of one scheduler, and its API server.
type desk struct {
	*Writes
	*server
	known     *known
	clock     *clocktesting.FakeClock
	outcomes  []Outcome
	activated []string
	// answers has the responses to confirmed writes.
	answers []*resourceapi.ResourceClaim
}

// anyTest is a *testing.T or a *rapid.T.
type anyTest interface {
	require.TestingT
	Cleanup(func())
}

func newWrites(t anyTest, client kubernetes.Interface, known *known, clock clock.PassiveClock, settled func(Outcome)) *Writes {
	writes, err := New(Config{Client: client, Delivered: known.told, Tracker: known, Clock: clock, Settled: settled})
	require.NoError(t, err)
	t.Cleanup(writes.queue.ShutDown)
	return writes
}

func newDesk(t anyTest) *desk {
	d := &desk{
		server: &server{stored: map[string]*resourceapi.ResourceClaim{}}, known: newKnown(),
		clock: clocktesting.NewFakeClock(time.Unix(0, 0)),
	}
	d.Writes = newWrites(t, d.client(), d.known, d.clock, func(outcome Outcome) { d.outcomes = append(d.outcomes, outcome) })
	return d
}

// created creates a claim, and lets the scheduler's watch deliver it.
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

// writeAs writes an allocation. how decides how the server handles the write.
func (d *desk) writeAs(ctx context.Context, how fate, claim *resourceapi.ResourceClaim) (*resourceapi.ResourceClaim, error) {
	d.next = how
	ctx = klog.NewContext(ctx, logr.Discard())
	return d.Client().ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
}

// from returns the names of the devices that another pod must not get. own is the UID of that pod's claim.
func (d *desk) from(own types.UID) []string {
	return namesOf(d.InUse(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "other"}}, own, func(pod *v1.Pod) { d.activated = append(d.activated, pod.Name) }))
}

var fateOf = map[string]fate{
	"told": told, "answer-lost": answerLost, "request-late": requestLate, "conflict": conflict, "throttled": throttled, "refused": refused, "not-sent": notSent,
}

// TestWhatBecomesOfWrites runs the commands of a file. The file has the result of each command: the error, the outcomes,
// whether the waiting pod is activated, the devices in use for other claims, and the claim's devices in the scheduler's list.
func TestWhatBecomesOfWrites(t *testing.T) {
	transcript.Run(t, filepath.Join("testdata", "writes.txt"), func(t *testing.T, input string) string {
		d, uids := newDesk(t), map[string]types.UID{}
		var lines []string
		for command := range strings.SplitSeq(input, ", ") {
			words := append(strings.Fields(command), "", "")
			args := words[min(2, len(words)-2) : len(words)-2]
			outcomes, activated := len(d.outcomes), len(d.activated)
			var said []string
			err := d.do(t, uids, words[0], words[1], args)
			if err != nil {
				said = append(said, err.Error())
			}
			for _, outcome := range d.outcomes[outcomes:] {
				said = append(said, string(outcome))
			}
			if len(d.activated) > activated {
				said = append(said, "tried again")
			}
			if kept := d.from(""); len(kept) > 0 {
				said = append(said, "kept "+strings.Join(kept, " "))
			}
			require.Equal(t, len(d.from("")) > 0, len(d.claims)+len(d.contested) > 0)
			require.False(t, words[0] == "write" && err != nil && len(d.claims) > 0 && d.queue.Len() == 0, "nobody looks at it")
			require.LessOrEqual(t, uint64(len(d.outcomes)), d.Ends())
			if own := d.from(uids[words[1]]); len(uids) == 1 && uids[words[1]] != "" && len(own) > 0 {
				said = append(said, "also from itself")
			}
			if has := devicesOf(d.known.claims[words[1]]); has != nil {
				said = append(said, "has "+strings.Join(has, " "))
			}
			if words[0] == "create" && len(said) == 0 {
				continue
			}
			lines = append(lines, command+": "+strings.Join(append(said, "-")[:max(1, len(said))], "; "))
		}
		return strings.Join(lines, "\n")
	})
}

// do runs a command of the file for a claim.
func (d *desk) do(t *testing.T, uids map[string]types.UID, verb, name string, args []string) error {
	var claim *resourceapi.ResourceClaim
	if stored := d.stored[name]; stored != nil {
		claim = stored.DeepCopy()
	}
	switch verb {
	case "create":
		if made := d.create(name); uids[name] == "" {
			uids[name] = made.UID
		}
	case "touch":
		d.store(claim)
	case "deallocate":
		claim.Status.Allocation = nil
		d.store(claim)
	case "allocate": // by another scheduler
		d.store(with(claim, args...))
	case "remove":
		d.remove(name)
	case "write":
		devices := args[1:]
		if len(devices) > 0 {
			claim = with(claim, devices...)
		}
		got, err := d.writeAs(t.Context(), fateOf[args[0]], claim)
		if err == nil {
			d.answers = append(d.answers, got)
		}
		return err
	case "answer-again": // a response or a read that is outdated
		i, err := strconv.Atoi(name)
		require.NoError(t, err)
		d.add(d.answers[i], true)
	case "carry-out":
		late := d.late[0]
		d.late = d.late[1:]
		_, err := d.apply(late)
		return err
	case "changes-are":
		d.fences = fateOf[name]
	case "reads-fail":
		d.readFails = 1
	case "pass":
		took, err := time.ParseDuration(name)
		require.NoError(t, err)
		d.clock.Step(took)
	case "hear":
		d.hearAll()
	case "relist":
		d.known.relist(d.server)
	case "assume":
		return d.known.AssumeClaimAfterAPICall(claim)
	case "unknown":
		delete(d.known.claims, name)
	case "catch-up":
		return d.CatchUp(t.Context())
	case "settle":
		known, err := d.settle(t.Context(), uids[name])
		switch {
		case known:
			return errors.New("settled") // although the claim could not be changed
		case err == nil:
			return errors.New("not settled yet")
		}
		return err
	case "check", "check-admin":
		if len(args) == 0 {
			return d.Check(claim)
		}
		claim = with(claim, args...)
		for i := range claim.Status.Allocation.Devices.Results {
			claim.Status.Allocation.Devices.Results[i].AdminAccess = new(verb == "check-admin")
		}
		return d.Check(claim)
	default:
		t.Fatalf("no command %q", verb)
	}
	return nil
}

// TestOneClaimHasABound checks that the pending writes of a claim, and the pods that wait for them, are limited in number.
func TestOneClaimHasABound(t *testing.T) {
	d := newDesk(t)
	claim := d.created("claim")
	for i := range maxUnconfirmed {
		_, err := d.writeAs(t.Context(), requestLate, with(claim, fmt.Sprint(i)))
		require.Error(t, err)
	}
	writes := d.writes
	_, err := d.writeAs(t.Context(), told, with(claim, "one more"))
	require.EqualError(t, err, "the API server has not answered 64 earlier writes of claim default/claim: the scheduler writes the allocation again after the answers")
	require.Equal(t, writes, d.writes, "nothing was sent")
	require.Len(t, d.from(""), maxUnconfirmed)

	for i := range maxWaiting + 10 {
		d.InUse(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint(i))}}, "", func(*v1.Pod) { d.activated = append(d.activated, "") })
	}
	d.remove("claim")
	_, err = d.settle(t.Context(), claim.UID)
	require.NoError(t, err)
	require.Len(t, d.activated, maxWaiting)
}

// TestIndexIsMadeOnce checks that New fails for a store that already has the index.
func TestIndexIsMadeOnce(t *testing.T) {
	d := newDesk(t)
	_, err := New(Config{Client: d.client(), Delivered: d.known.told})
	require.ErrorContains(t, err, "look up ResourceClaims by their devices: ")
	_, err = New(Config{Client: fake.NewClientset(), KubeConfig: &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: "missing"}}, Delivered: newKnown().told})
	require.ErrorContains(t, err, "create the client for allocations: ")
}

// TestRun checks that Run reads a claim until its writes are settled.
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
	require.True(t, d.end(claim.UID, 1, func(write) Outcome { return Gone }), "nothing is left to end")
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
