// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/debug"
)

// queue is a bench on which decisions take as long as the test wants.
type queue struct {
	*bench
	t       *testing.T
	asking  sync.WaitGroup
	mutex   sync.Mutex
	running map[string]int
	// most is how many were decided at a time, of one namespace and of all.
	mostOfOne, mostOfAll int
	// done are the namespaces of those that were decided, in order.
	done []string
}

// newQueue has namespaces with a Placement p each.
func newQueue(t *testing.T, takes time.Duration, namespaces ...string) *queue {
	q := &queue{bench: newBench(t), t: t, running: map[string]int{}}
	for _, namespace := range namespaces {
		q.change(t, "placements: [{metadata: {namespace: "+namespace+", name: p}}]")
	}
	q.scheduled = func(ctx context.Context, namespace string) {
		q.mutex.Lock()
		q.running[namespace]++
		all := 0
		for _, n := range q.running {
			all += n
		}
		q.mostOfOne, q.mostOfAll = max(q.mostOfOne, q.running[namespace]), max(q.mostOfAll, all)
		q.mutex.Unlock()
		select {
		case <-time.After(takes):
		case <-ctx.Done():
		}
		q.mutex.Lock()
		defer q.mutex.Unlock()
		q.running[namespace]--
		q.done = append(q.done, namespace)
	}
	return q
}

// ask asks for a Placement, after all that was asked before, and hands the answer over.
func (q *queue) ask(namespace string, answered func(code int, body string)) {
	q.asking.Go(func() {
		response := q.do(q.t, http.MethodGet, debug.Path+"/"+namespace+"/p", "root", "", "")
		answered(response.Code, response.Body.String())
	})
	synctest.Wait()
}

func (q *queue) ok(code int, body string) {
	if code != http.StatusOK {
		q.t.Error(code, body)
	}
}

// However many ask about one namespace, those who ask about another are answered.
func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, time.Second, "many", "few", "one")
		for range 8 {
			q.ask("many", q.ok)
		}
		q.ask("few", q.ok)
		q.ask("few", q.ok)
		q.ask("one", q.ok)
		q.asking.Wait()
		require.Equal(t, 1, q.mostOfOne)
		require.Equal(t, 2, q.mostOfAll)
		at := map[string]int{}
		for i, namespace := range q.done {
			at[namespace] = i
		}
		require.Less(t, at["few"], 6, "%v", q.done)
		require.Less(t, at["one"], 6, "%v", q.done)
		require.Len(t, q.done, 11)
	})
}

// Nobody waits for ever, and who can't wait is told.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, 0, "slow", "a")
		q.scheduled = func(context.Context, string) { time.Sleep(time.Hour) }
		timeouts, refusals, answers := 0, 0, 0
		for range 20 {
			q.ask("slow", func(code int, body string) {
				q.mutex.Lock()
				defer q.mutex.Unlock()
				switch {
				case strings.Contains(body, string(metav1.StatusReasonServerTimeout)):
					timeouts++
				case code == http.StatusTooManyRequests:
					if !strings.Contains(body, "8 others wait for Placements of the namespace slow to be decided") {
						t.Error(body)
					}
					refusals++
				default:
					answers++
				}
			})
		}
		q.asking.Wait()
		require.Equal(t, 11, refusals)
		require.Equal(t, 8, timeouts)
		require.Equal(t, 1, answers)

		q.scheduled = nil
		for range 10 {
			q.ask("slow", q.ok)
			q.ask("a", q.ok)
		}
		q.asking.Wait()
	})
}

// An answer that ends because evaluations take too long is an answer.
func TestOverrun(t *testing.T) {
	b := newBench(t)
	b.change(t, `placements: [{metadata: {namespace: ns, name: slow}, spec: {predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["true"]}}}]}}]`)
	b.limit = func(ctx context.Context) (context.Context, context.CancelFunc) {
		return placement.WithDeadline(ctx, 0, 2*time.Second)
	}
	report := b.get(t, "slow")
	require.True(t, report.Stands)
	require.Empty(t, report.Error)
	require.Equal(t, 3, report.Filters[0].Count)
	require.Equal(t, "is not evaluated yet", report.Filters[0].Removed[0].Reason)
	condition := report.Status.Conditions[1]
	require.Equal(t, placement.ConditionEvaluationFailed, condition.Type)
	require.Contains(t, condition.Message, "The evaluation takes longer than 2s on all clusters together; the former decision stands")
}
