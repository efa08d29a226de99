// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/celset/celset/plugin/guard"
	"github.com/celset/celset/plugin/watchdog"
)

// bench is a scheduler whose queue has what is put there, on a clock that stands still.
type bench struct {
	*scheduler.Scheduler
	*watched
	clock *clocktesting.FakePassiveClock
	queue []*v1.Pod
	err   error
}

func (b *bench) PodsInActiveQ() []*v1.Pod { return b.queue }

func newBench(t *testing.T, clock *clocktesting.FakePassiveClock) *bench {
	t.Helper()
	b := &bench{clock: clock}
	g := guard.New(clock)
	g.Configure(guard.Limits{SharePercent: 20, ShareBurst: time.Second, BackOffInitial: time.Second, BackOffMax: time.Minute})
	b.watched = &watched{guard: g, dog: watchdog.New(clock, 30*time.Second, func() {})}
	g.Watch(b)
	b.Scheduler = &scheduler.Scheduler{
		NextEntity: func(klog.Logger) (framework.QueuedEntityInfo, error) {
			if len(b.queue) == 0 {
				return nil, b.err
			}
			pod := b.queue[0]
			b.queue = b.queue[1:]
			info, err := framework.NewPodInfo(pod)
			return &framework.QueuedPodInfo{PodInfo: info}, err
		},
		SchedulePod: func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
			return scheduler.ScheduleResult{SuggestedHost: "node"}, nil
		},
	}
	b.wrap(b.Scheduler)
	return b
}

func pod(namespace, name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}
}

func (b *bench) admit(p *v1.Pod) *guard.Refusal {
	_, refusal := b.guard.Admit(guard.Request{Pod: p, Claims: []types.UID{"claim-of-" + p.UID}, Activate: func(*v1.Pod) {}})
	return refusal
}

func newClock() *clocktesting.FakePassiveClock {
	return clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
}

// Guard and watchdog see when cycles begin and end.
func TestCyclesAreWatched(t *testing.T) {
	clock := newClock()
	b := newBench(t, clock)
	pass := func(d time.Duration) { clock.SetTime(clock.Now().Add(d)) }
	b.queue = []*v1.Pod{pod("a", "1"), pod("a", "2"), pod("b", "3")}
	_, err := b.NextEntity(klog.Background())
	require.NoError(t, err)
	require.Nil(t, b.admit(pod("a", "1")))
	pass(29 * time.Second)
	require.NoError(t, b.dog.Check())
	result, err := b.SchedulePod(t.Context(), nil, nil, &framework.QueuedPodInfo{PodInfo: &framework.PodInfo{Pod: pod("a", "another of the group")}})
	require.NoError(t, err)
	require.Equal(t, "node", result.SuggestedHost)
	pass(29 * time.Second)
	require.NoError(t, b.dog.Check(), "there was progress")
	pass(time.Second)
	require.Error(t, b.dog.Check())

	_, err = b.NextEntity(klog.Background())
	require.NoError(t, err)
	require.NoError(t, b.dog.Check(), "that is the next cycle")
	require.Equal(t, guard.ReasonShare, b.admit(pod("a", "2")).Reason, "the last one was the namespace's, and another waits")

	b.queue, b.err = nil, errors.New("closed")
	entity, err := b.NextEntity(klog.Background())
	require.ErrorIs(t, err, b.err)
	require.Nil(t, entity)
	pass(time.Hour)
	require.NoError(t, b.dog.Check(), "nothing is being tried")
}

func TestCommand(t *testing.T) {
	cmd := NewCommand()
	flag := cmd.Flags().Lookup("cycle-timeout")
	require.Equal(t, "30s", flag.DefValue)
	for _, name := range []string{"config", "feature-gates", "secure-port", "leader-elect", "v", "version"} {
		require.NotNil(t, cmd.Flags().Lookup(name), name)
	}
	cmd.SetArgs([]string{"--cycle-timeout=-1s"})
	require.ErrorContains(t, cmd.Execute(), "--cycle-timeout=-1s: must be zero, for no limit, or positive")
}

// ask sends a request through the filters that kube-scheduler's server has.
func ask(t *testing.T, a authorizer.Authorizer, path string) (int, string) {
	t.Helper()
	handler := genericapifilters.WithAuthorization(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }), a, scheme.Codecs)
	handler = genericapifilters.WithRequestInfo(handler, &request.RequestInfoFactory{})
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func TestLivezFailsWithCheck(t *testing.T) {
	var failure error
	a := newLivez(nil, func() error { return failure })
	for _, path := range []string{"/livez", "/healthz", "/readyz", "/metrics"} {
		code, body := ask(t, a, path)
		require.Equal(t, http.StatusOK, code, path)
		require.Equal(t, "ok", body)
	}
	failure = errors.New("a scheduling cycle has made no progress")
	for _, path := range []string{"/livez", "/livez?verbose", "/healthz"} {
		code, body := ask(t, a, path)
		require.Equal(t, http.StatusInternalServerError, code, path)
		require.Contains(t, body, "a scheduling cycle has made no progress")
	}
	for _, path := range []string{"/readyz", "/metrics"} {
		code, _ := ask(t, a, path)
		require.Equal(t, http.StatusOK, code, "what is wrong is to be found out: %s", path)
	}
}

// Who may ask for what is the inner authorizer's matter.
func TestLivezAsksInner(t *testing.T) {
	a := newLivez(authorizerfactory.NewAlwaysDenyAuthorizer(), func() error { return nil })
	code, _ := ask(t, a, "/livez")
	require.Equal(t, http.StatusForbidden, code)
	require.False(t, a.ConditionsAwareAuthorize(t.Context(), authorizer.AttributesRecord{Path: "/metrics"}).IsAllow())
}
