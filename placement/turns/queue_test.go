// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/internal/testing/cases"
)

func requestOf(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// TestTheQueueIsFair checks that no request is lost, and that each namespace keeps its order. While a namespace waits, each
// other namespace may have at most one turn.
func TestTheQueueIsFair(t *testing.T) {
	cases.Check(t, func(t *rapid.T) {
		q, waiting := newOrder(), map[string][]reconcile.Request{}
		// overtaken[a][b] counts the turns of namespace b since namespace a waits.
		overtaken, n := map[string]map[string]int{}, 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				namespace := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "namespace")
				if len(waiting[namespace]) == 0 {
					overtaken[namespace] = map[string]int{}
				}
				n++
				waiting[namespace] = append(waiting[namespace], requestOf(namespace, fmt.Sprint(n)))
				q.Push(requestOf(namespace, fmt.Sprint(n)))
			},
			"pop": func(t *rapid.T) {
				if q.Len() == 0 {
					t.Skip("nothing waits")
				}
				got := q.Pop()
				require.Equal(t, waiting[got.Namespace][0], got)
				waiting[got.Namespace] = waiting[got.Namespace][1:]
				for namespace, items := range waiting {
					if namespace == got.Namespace || len(items) == 0 {
						continue
					}
					overtaken[namespace][got.Namespace]++
					require.LessOrEqual(t, overtaken[namespace][got.Namespace], 1)
				}
				overtaken[got.Namespace] = map[string]int{}
			},
			"": func(t *rapid.T) {
				length := 0
				for _, items := range waiting {
					length += len(items)
				}
				require.Equal(t, length, q.Len())
			},
		})
	})
}

func TestAControllersQueueIsFair(t *testing.T) {
	q := NewQueue("", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	for _, request := range []reconcile.Request{requestOf("a", "1"), requestOf("a", "1"), requestOf("a", "2"), requestOf("b", "3")} {
		q.Add(request)
	}
	for _, want := range []reconcile.Request{requestOf("a", "1"), requestOf("b", "3"), requestOf("a", "2")} {
		got, _ := q.Get()
		require.Equal(t, want, got)
	}
	require.Zero(t, q.Len())
}
