// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// recorded notes what is recorded, and when.
type recorded struct {
	mutex sync.Mutex
	notes []string
	at    []time.Time
	of    []runtime.Object
}

func (r *recorded) Eventf(regarding, _ runtime.Object, _, _, _, note string, args ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.notes, r.at, r.of = append(r.notes, fmt.Sprintf(note, args...)), append(r.at, time.Now()), append(r.of, regarding)
}

// noted are the notes so far.
func (r *recorded) noted() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.notes)
}

func newRecorded(t *testing.T) (*recorded, *lateEvents) {
	t.Helper()
	scheme, to := runtime.NewScheme(), &recorded{}
	require.NoError(t, AddToScheme(scheme))
	return to, newLateEvents(to, scheme)
}

// Each event is recorded as much later as any other, in their order, as it was when it happened.
func TestEventsAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, late := newRecorded(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = late.Start(ctx) }()
		object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u"}}
		began := time.Now()
		for i := range 5 {
			late.Eventf(object, nil, corev1.EventTypeNormal, "R", "A", "%s %d%%", object.Name, i)
			time.Sleep(300 * time.Millisecond)
		}
		object.Name = "q"
		synctest.Wait()
		require.Equal(t, []string{"p 0%", "p 1%"}, to.noted())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"p 0%", "p 1%", "p 2%", "p 3%", "p 4%"}, to.noted())
		for i, at := range to.at {
			require.Equal(t, eventsAfter+time.Duration(i)*300*time.Millisecond, at.Sub(began))
			require.Equal(t, &corev1.ObjectReference{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement", Namespace: "n", Name: "p", UID: "u"}, to.of[i])
		}
		cancel()
		synctest.Wait()
	})
}

// At the end nothing is left, what comes still later is recorded at once.
func TestLateEventsAreRecordedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, late := newRecorded(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = late.Start(ctx) }()
		late.Eventf(&corev1.ObjectReference{}, nil, "", "", "", "one")
		late.Eventf(&corev1.ObjectReference{}, nil, "", "", "", "two")
		cancel()
		synctest.Wait()
		require.Equal(t, []string{"one", "two"}, to.noted())
		late.Eventf(&corev1.ObjectReference{}, nil, "", "", "", "three")
		require.Equal(t, []string{"one", "two", "three"}, to.noted())
	})
}

// However many there are, not more than that wait, and none overtakes another.
func TestLateEventsAreBounded(t *testing.T) {
	to, late := newRecorded(t)
	for i := range mostLateEvents + 3 {
		late.Eventf(&corev1.ObjectReference{}, nil, "", "", "", "%d", i)
	}
	require.Len(t, late.waiting, mostLateEvents)
	require.Equal(t, []string{"0", "1", "2"}, to.noted())
}
