// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
)

// server is a Store with a fake API server that handles patches of pods.
type server struct {
	*Store
	client *fake.Clientset

	mutex sync.Mutex
	// answers has the errors that the next patches return. Later patches succeed.
	answers []error
	// patches has the reasons of the conditions sent so far.
	patches []string
	// hook is called for each patch. The mutex is not locked then.
	hook func()
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{client: fake.NewClientset()}
	s.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		if patch.GetSubresource() != "status" || patch.GetPatchType() != types.StrategicMergePatchType {
			return true, nil, errors.New("not a strategic merge patch of the status")
		}
		var sent v1.Pod
		if err := json.Unmarshal(patch.GetPatch(), &sent); err != nil {
			return true, nil, err
		}
		if sent.UID != types.UID(patch.GetName()) {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, patch.GetName(), errors.New("another UID"))
		}
		s.mutex.Lock()
		s.patches = append(s.patches, sent.Status.Conditions[0].Reason)
		var answer error
		if len(s.answers) > 0 {
			answer, s.answers = s.answers[0], s.answers[1:]
		}
		s.mutex.Unlock()
		if s.hook != nil {
			s.hook()
		}
		return true, &v1.Pod{}, answer
	})
	s.Store = NewStore(s.client, clock.RealClock{})
	return s
}

func (s *server) sent() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.patches
}

func conditionWith(reason string) *v1.PodCondition {
	return newCondition(v1.ConditionFalse, reason, "", time.Unix(0, 0))
}

func (s *server) start(t *testing.T) (stop func()) {
	t.Helper()
	return s.startWith(t.Context())
}

func (s *server) startWith(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestWrite(t *testing.T) {
	s := newServer(t)
	require.NoError(t, s.Write(t.Context(), podOf("a", 5), conditionWith("first"), time.Time{}))
	another := podOf("a", 5)
	another.UID = "another"
	require.True(t, apierrors.IsConflict(s.Write(t.Context(), another, conditionWith("second"), time.Time{})))
	s.answers = []error{apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")}
	require.True(t, apierrors.IsNotFound(s.Write(t.Context(), podOf("a", 5), conditionWith("third"), time.Time{})))
	require.Equal(t, []string{"first", "third"}, s.sent())
}

// TestLatestIsWritten checks that only the latest of several waiting conditions of a pod is written.
func TestLatestIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.WriteLater(podOf("a", 5), conditionWith("end-1"), nil)
		s.WriteLater(podOf("a", 5), conditionWith("end-2"), nil)
		s.WriteLater(podOf("b", 5), conditionWith("end"), nil)
		require.NoError(t, s.Write(t.Context(), podOf("b", 5), conditionWith("begin"), time.Now().Add(1)))
		stop := s.start(t)
		synctest.Wait()
		require.Equal(t, []string{"begin", "end-2"}, s.sent())
		stop()
	})
}

// TestEndIsNotOvertaken checks that Write does not record a hold whose end waits to be written.
func TestEndIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		begun := time.Now()
		time.Sleep(time.Second)
		s.WriteLater(podOf("a", 5), conditionWith("end"), nil)
		require.ErrorIs(t, s.Write(t.Context(), podOf("a", 5), conditionWith("begin"), begun), ErrEnded)
		stop := s.start(t)
		synctest.Wait()
		require.Equal(t, []string{"end"}, s.sent())
		stop()
	})
}

// TestRequestsOfAPodFollowEachOther checks that the end of a hold is written only after the request that records the hold has
// finished.
func TestRequestsOfAPodFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.hook = func() { time.Sleep(time.Second) }
		begun := make(chan error)
		go func() { begun <- s.Write(t.Context(), podOf("a", 5), conditionWith("begin"), time.Time{}) }()
		synctest.Wait()
		stop := s.start(t)
		s.WriteLater(podOf("a", 5), conditionWith("end"), nil)
		synctest.Wait()
		require.Equal(t, []string{"begin"}, s.sent())
		require.NoError(t, <-begun)
		synctest.Wait()
		require.Equal(t, []string{"begin", "end"}, s.sent())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Write(ctx, podOf("a", 5), conditionWith("late"), time.Time{}), context.Canceled)
		stop()
	})
}

func TestWritesAreRepeated(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("later")
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "a")
	for name, test := range map[string]struct {
		answers []error
		writes  int
		failed  error
	}{
		"stored":           {writes: 1},
		"stored at last":   {answers: []error{unavailable, unavailable}, writes: 3},
		"never stored":     {answers: []error{unavailable, unavailable, unavailable, unavailable, unavailable, unavailable, unavailable, unavailable, unavailable}, writes: maxWrites, failed: unavailable},
		"the pod is gone":  {answers: []error{gone}, writes: 1, failed: gone},
		"gone after a try": {answers: []error{unavailable, gone}, writes: 2, failed: gone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.answers = test.answers
				logger := ktesting.NewLogger(ktesting.NopTL{}, ktesting.NewConfig(ktesting.BufferLogs(true)))
				stop := s.startWith(klog.NewContext(t.Context(), logger))
				var failed error
				s.WriteLater(podOf("a", 5), conditionWith("end"), func(err error) { failed = err })
				time.Sleep(2 * idle)
				synctest.Wait()
				require.Len(t, s.sent(), test.writes)
				require.ErrorIs(t, failed, test.failed)
				logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
				require.Equal(t, errors.Is(failed, unavailable), strings.Contains(logged, "The condition of a pod could not be written"), logged)
				require.Empty(t, s.later)
				stop()
			})
		})
	}
}

// TestOtherConditionsAreLeftAlone checks that the patch keeps other conditions.
func TestOtherConditionsAreLeftAlone(t *testing.T) {
	pod := podOf("a", 5)
	pod.Namespace = "default"
	pod.Status = v1.PodStatus{NominatedNodeName: "node-1", Conditions: []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}}
	client := fake.NewClientset(pod)
	s := NewStore(client, clock.RealClock{})
	for _, reason := range []string{"first", "second"} {
		require.NoError(t, s.Write(t.Context(), pod, conditionWith(reason), time.Time{}))
	}
	stored, err := client.CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "node-1", stored.Status.NominatedNodeName)
	require.Len(t, stored.Status.Conditions, 2)
	require.Equal(t, "second", ConditionOf(stored).Reason)
}
