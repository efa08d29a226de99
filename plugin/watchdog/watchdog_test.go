// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// bench is a scheduler with a clock that stands still.
type bench struct {
	*Watchdog
	t       *testing.T
	clock   *clocktesting.FakePassiveClock
	client  *fake.Clientset
	claims  []types.UID
	journal *Journal
	written int64
	stuck   int
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, clock: clocktesting.NewFakePassiveClock(noon), client: fake.NewClientset()}
	b.restart()
	return b
}

// restart is what a new process does with what is in the API.
func (b *bench) restart() {
	b.written = 0
	b.Watchdog = New(b.clock, DefaultTimeout, func() { b.stuck++ })
	b.journal = NewJournal(b.clock, b.client.CoordinationV1().Leases("kube-system"), "attempts", func() []types.UID { return b.claims })
}

func (b *bench) pass(d time.Duration) { b.clock.SetTime(b.clock.Now().Add(d)) }

// round is one round of Run.
func (b *bench) round() { b.written = b.look(b.t.Context(), b.journal, b.written) }

func (b *bench) read() []PutOff {
	b.t.Helper()
	all, err := b.journal.Read(b.t.Context())
	require.NoError(b.t, err)
	return all
}

// writes counts the requests that change something.
func (b *bench) writes() (n int) {
	for _, action := range b.client.Actions() {
		if action.GetVerb() != "get" {
			n++
		}
	}
	return n
}

func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-of-" + name)}}
}

func TestCheckFailsWithoutProgress(t *testing.T) {
	b := newBench(t)
	require.NoError(t, b.Check())
	b.pass(time.Hour)
	require.NoError(t, b.Check(), "nothing is to be done")
	b.Began(pod("p"))
	b.pass(DefaultTimeout - 1)
	require.NoError(t, b.Check())
	b.pass(1)
	require.EqualError(t, b.Check(), "a scheduling cycle has made no progress for 30s, the limit is 30s")
	require.Equal(t, DefaultTimeout, b.Age())
	b.round()
	b.round()
	require.Equal(t, 1, b.stuck, "a cycle counts once")

	b.Began(pod("next of the group"))
	require.NoError(t, b.Check(), "that is progress")
	b.pass(DefaultTimeout)
	b.round()
	require.Equal(t, 2, b.stuck)
	b.Ended()
	require.NoError(t, b.Check())
	require.Zero(t, b.Age())
}

// Most attempts are not written down.
func TestJournalHasLongAttempts(t *testing.T) {
	b := newBench(t)
	b.claims = []types.UID{"claim"}
	for range 10 {
		b.Began(pod("quick"))
		b.pass(recordAfter - 1)
		b.round()
		b.Ended()
		b.round()
	}
	require.Zero(t, b.writes())

	b.Began(pod("slow"))
	b.pass(recordAfter)
	b.round()
	b.round()
	require.Equal(t, 1, b.writes())
	lease, err := b.client.CoordinationV1().Leases("kube-system").Get(t.Context(), "attempts", metav1.GetOptions{})
	require.NoError(t, err)
	require.JSONEq(t, `[{"namespace":"a","name":"slow","uid":"uid-of-slow","claims":["claim"],"since":"2026-01-02T12:00:04Z"}]`,
		lease.Annotations[AttemptsAnnotation])
	b.Ended()
	b.round()
	b.round()
	require.Equal(t, 2, b.writes())
	require.Empty(t, b.read(), "it ended")
}

// TestRestarts has a pod end the scheduler again and again, and another one do so once.
func TestRestarts(t *testing.T) {
	b := newBench(t)
	require.Empty(t, b.read(), "the first start")
	b.claims = []types.UID{"claim"}
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		// A pod of a Deployment comes again under another name.
		b.Began(pod(fmt.Sprintf("killer-%d", i)))
		b.pass(recordAfter)
		b.round()
		b.restart()
		all := b.read()
		require.Len(t, all, 1)
		require.True(t, all[0].IsNew)
		require.Equal(t, i+1, all[0].Ends)
		require.Equal(t, want, all[0].Until.Sub(b.clock.Now()))
		require.Equal(t, []types.UID{types.UID(fmt.Sprintf("uid-of-killer-%d", i)), "claim"}, all[0].Keys())
		require.Equal(t, fmt.Sprintf("the scheduler ended while it tried pod a/killer-%d, which it did since %s: "+
			"pods that are not known to do that are tried first", i, all[0].Since.UTC().Format(time.RFC3339)), all[0].Message())
		b.pass(want)
	}

	b.claims = nil
	b.Began(pod("other"))
	b.pass(recordAfter)
	b.round()
	b.restart()
	b.pass(time.Second)
	all := b.read()
	require.Len(t, all, 1, "what was put off is tried now")
	require.Equal(t, "other", all[0].Name)
	b.Began(pod("third"))
	b.pass(recordAfter)
	b.round()
	b.restart()
	all = b.read()
	require.Len(t, all, 2)
	require.Equal(t, "other", all[0].Name)
	require.False(t, all[0].IsNew, "its event is there")
	require.True(t, all[1].IsNew)

	b.pass(time.Hour)
	require.Empty(t, b.read())
}

func TestJournalIsBounded(t *testing.T) {
	b := newBench(t)
	for i := range 2 * maxAttempts {
		b.Began(pod(fmt.Sprint(i)))
		b.pass(recordAfter)
		b.round()
		b.restart()
		require.LessOrEqual(t, len(b.read()), maxAttempts)
	}
	require.Len(t, b.read(), maxAttempts)
	require.Equal(t, fmt.Sprint(2*maxAttempts-1), b.read()[maxAttempts-1].Name)
}

// The API server may refuse. It is asked again, and nothing else depends on it.
func TestJournalThatCannotBeWritten(t *testing.T) {
	b := newBench(t)
	refuse := true
	b.client.PrependReactor("create", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse, nil, errors.New("forbidden")
	})
	b.Began(pod("slow"))
	b.pass(DefaultTimeout)
	b.round()
	require.Equal(t, 1, b.stuck)
	require.Error(t, b.Check())
	refuse = false
	b.round()
	b.restart()
	require.Len(t, b.read(), 1)
}

func TestJournalThatCannotBeRead(t *testing.T) {
	b := newBench(t)
	_, err := b.client.CoordinationV1().Leases("kube-system").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "attempts", Annotations: map[string]string{AttemptsAnnotation: "?"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = b.journal.Read(t.Context())
	require.ErrorContains(t, err, "read which pods were being tried: annotation celset.dev/attempts of Lease kube-system/attempts: ")
	b.client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("forbidden")
	})
	_, err = b.journal.Read(t.Context())
	require.EqualError(t, err, "read which pods were being tried: forbidden")
}

// TestRun uses the real time.
func TestRun(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Run(ctx, b.journal)
	}()
	b.Began(pod("slow"))
	b.pass(time.Second)
	require.Eventually(t, func() bool {
		lease, err := b.client.CoordinationV1().Leases("kube-system").Get(t.Context(), "attempts", metav1.GetOptions{})
		return err == nil && lease.Annotations[AttemptsAnnotation] != ""
	}, 2*time.Minute, 10*time.Millisecond)
	cancel()
	<-ended
}
