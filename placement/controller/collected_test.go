// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func TestCollectedOncePerChange(t *testing.T) {
	n, failure := 0, error(nil)
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		n++
		return n, failure
	}
	requireValue := func(want int) {
		t.Helper()
		value, err := c.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
	requireValue(1)
	requireValue(1)
	c.changed()
	c.changed()
	requireValue(2)

	failure = errors.New("no cache")
	requireValue(2)
	c.changed()
	_, err := c.get(t.Context())
	require.ErrorIs(t, err, failure)
	failure = nil
	requireValue(4)
	requireValue(4)
}

// A change while something is collected may be in it or not, so it is collected anew.
func TestCollectedDuringChange(t *testing.T) {
	n := 0
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		if n++; n == 1 {
			c.changed()
		}
		return n, nil
	}
	for _, want := range []int{1, 2, 2} {
		value, err := c.get(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
}

func TestCollectedConcurrently(t *testing.T) {
	state := 0
	var lock sync.Mutex
	c := collected[int]{}
	c.collect = func(context.Context) (int, error) {
		lock.Lock()
		defer lock.Unlock()
		return state, nil
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 200 {
				lock.Lock()
				state++
				changed := state
				lock.Unlock()
				c.changed()
				if value, err := c.get(t.Context()); err != nil || value < changed {
					t.Errorf("%d after change %d: %v", value, changed, err)
				}
			}
		})
	}
	wait.Wait()
}

func TestUnchangedClustersAreTheSameObjects(t *testing.T) {
	list := func(versions string) (result []*clusterv1.ManagedCluster) {
		for i, version := range strings.Fields(versions) {
			if version != "-" {
				result = append(result, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{
					Name: string(rune('a' + i)), UID: types.UID(version[:1]), ResourceVersion: version[1:],
				}})
			}
		}
		return result
	}
	for _, test := range []struct {
		former, now string
		// same are the places of the objects among the former ones, -1 for new ones.
		same []int
	}{
		{"", "u1 u1", []int{-1, -1}}, {"u1", "", nil},
		{"u1 u1 u1", "u1 u2 u1", []int{0, -1, 2}}, {"u1 u1", "u1 v1", []int{0, -1}}, // one changes, one is another
		{"u1 u1 u1", "- u1 u1", []int{1, 2}}, {"u1 - u1", "u1 u1 u1", []int{0, -1, 1}}, // one goes, one comes
	} {
		former, now := list(test.former), list(test.now)
		got := unchanged(former, now)
		require.Len(t, got, len(now), test)
		for i, c := range got {
			require.Equal(t, now[i], c, test)
			require.Equal(t, test.same[i], slices.Index(former, c), test)
		}
	}
}

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
