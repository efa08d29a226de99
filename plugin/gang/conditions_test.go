// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/testing/plugintest"
)

// conditionCase has conditions that are written to a fake API server. All tests run with a fake clock.
type conditionCase struct {
	*conditions
	mutex sync.Mutex
	// written holds the patches that the API server got. err is its answer, and answer blocks it until the channel is closed.
	written []string
	err     error
	answer  chan struct{}
}

func newConditionCase(ctx context.Context) *conditionCase {
	c := &conditionCase{}
	c.conditions = newConditions(apiServer{of: c})
	c.start(ctx)
	return c
}

// apiServer is a client that only patches PodGroups. A fake clientset would serialize the requests.
type apiServer struct {
	kubernetes.Interface
	of *conditionCase
}

type schedulingGroup struct {
	schedulingclient.SchedulingV1beta1Interface
	of *conditionCase
}

type podGroups struct {
	schedulingclient.PodGroupInterface
	of *conditionCase
}

func (s apiServer) SchedulingV1beta1() schedulingclient.SchedulingV1beta1Interface {
	return schedulingGroup{of: s.of}
}

func (g schedulingGroup) PodGroups(string) schedulingclient.PodGroupInterface {
	return podGroups{of: g.of}
}

func (p podGroups) Patch(_ context.Context, _ string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*schedulingapi.PodGroup, error) {
	if p.of.answer != nil {
		<-p.of.answer
	}
	p.of.mutex.Lock()
	defer p.of.mutex.Unlock()
	p.of.written = append(p.of.written, string(patch))
	return nil, p.of.err
}

// requireWritten requires the number of writes, and that the last one contains the texts.
func (c *conditionCase) requireWritten(t *testing.T, count int, texts ...string) {
	t.Helper()
	synctest.Wait()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	require.Len(t, c.written, count)
	for _, text := range texts {
		require.Contains(t, c.written[count-1], text)
	}
}

func groupNumber(i int) *schedulingapi.PodGroup {
	return &schedulingapi.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("group-", i), UID: types.UID(fmt.Sprint(i))}}
}

func waits(message string) metav1.Condition {
	return metav1.Condition{Type: wellknown.ConditionNodeSetAvailable, Status: metav1.ConditionFalse, Reason: wellknown.ReasonNoNodeSet, Message: message}
}

func runs() metav1.Condition {
	return metav1.Condition{Type: wellknown.ConditionNodeSetAvailable, Status: metav1.ConditionTrue, Reason: wellknown.ReasonNodeSetFound}
}

// TestConditionWritesAreBounded checks that few writes are in progress and few conditions wait while the API server does not
// respond.
func TestConditionWritesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConditionCase(t.Context())
		c.answer = make(chan struct{})
		for i := range maxConditionWrites {
			require.True(t, c.report(groupNumber(i), waits("full")))
		}
		synctest.Wait()
		for i := range maxWanted {
			require.True(t, c.report(groupNumber(maxConditionWrites+i), waits("full")))
		}
		synctest.Wait()
		require.Len(t, c.wanted, maxWanted)
		require.False(t, c.report(groupNumber(maxConditionWrites+maxWanted), waits("full")))
		close(c.answer)
		c.requireWritten(t, maxConditionWrites+maxWanted)
		require.Empty(t, c.wanted)
	})
}

// TestMessagesAreBounded changes the message of a condition often, and then its status.
func TestMessagesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, group := newConditionCase(t.Context()), groupNumber(0)
		require.False(t, c.isFalse(group, wellknown.ConditionNodeSetAvailable))
		for i := range 27 {
			require.True(t, c.report(group, waits(fmt.Sprint("try ", i))))
			time.Sleep(1300 * time.Millisecond)
		}
		c.requireWritten(t, 4, "try 23")
		require.False(t, c.report(group, waits("try 26")))
		time.Sleep(refreshInterval)
		c.requireWritten(t, 5, "try 26")

		require.True(t, c.isFalse(group, wellknown.ConditionNodeSetAvailable))
		require.True(t, c.report(group, runs()))
		c.requireWritten(t, 6, `"status":"True"`)
		require.False(t, c.isFalse(group, wellknown.ConditionNodeSetAvailable))
		require.True(t, c.report(group, waits("again")))
		c.requireWritten(t, 7, "again")
	})
}

// TestLastConditionWins reports two states of a group while the API server does not respond.
func TestLastConditionWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, group := newConditionCase(t.Context()), groupNumber(0)
		c.answer = make(chan struct{})
		require.True(t, c.report(group, waits("full")))
		synctest.Wait()
		require.True(t, c.report(group, runs()))
		require.True(t, c.report(group, waits("full again")))
		require.True(t, c.report(group, runs()))
		close(c.answer)
		c.requireWritten(t, 2, `"status":"True"`)
	})
}

// TestConditionThatIsThereIsNotWritten checks a group of a scheduler that has started again.
func TestConditionThatIsThereIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, group := newConditionCase(t.Context()), groupNumber(0)
		group.Status.Conditions = []metav1.Condition{waits("full")}
		require.True(t, c.isFalse(group, wellknown.ConditionNodeSetAvailable))
		require.False(t, c.report(group, waits("full")))
		c.requireWritten(t, 0)
		require.True(t, c.report(group, runs()))
		c.requireWritten(t, 1, `"status":"True"`)
	})
}

// TestSimulationsAreNotReported checks that a search directly after a failed one does not replace its message.
func TestSimulationsAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newConditionCase(t.Context())
		pl, s := &NodeSets{conditions: c.conditions}, &groupSearch{begun: begun{groupNumber(0), time.Now()}}
		pl.unavailable(s, wellknown.ReasonNoNodeSet, "the pods of others are there")
		s.begin = time.Now()
		pl.unavailable(s, wellknown.ReasonNoNodeSet, "the pods of others are not there")
		time.Sleep(refreshInterval)
		c.requireWritten(t, 1, "the pods of others are there")
		s.begin = time.Now()
		pl.unavailable(s, wellknown.ReasonNoNodeSet, "a node is gone")
		c.requireWritten(t, 2, "a node is gone")
		pl.available(s.group)
		pl.available(s.group)
		c.requireWritten(t, 3, `"status":"True"`)
	})
}

// TestConditionThatCanNotBeWrittenIsLogged makes the API server reject each write.
func TestConditionThatCanNotBeWrittenIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, log := plugintest.WithLog(t.Context())
		c := newConditionCase(ctx)
		c.err = apierrors.NewForbidden(schedulingapi.Resource("podgroups"), "group", nil)
		require.True(t, c.report(groupNumber(0), waits("full")))
		time.Sleep(time.Minute)
		c.requireWritten(t, maxConditionTries)
		plugintest.RequireLogged(t, log, "The condition of a PodGroup could not be written")
		c.err = nil
		require.True(t, c.report(groupNumber(0), waits("full")))
		c.requireWritten(t, maxConditionTries+1)
	})
}
