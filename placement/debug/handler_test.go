// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/page"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/debug"
	"github.com/celset/celset/placement/report"
)

func TestLongRequests(t *testing.T) {
	good := object("ns", "new", "")
	for _, test := range []struct {
		query, body string
		code        int
		message     string
	}{
		{"", good + strings.Repeat("#", 128<<10), 413, "the limit is 131072 bytes"},
		{"", aliases(), 400, "excessive aliasing"},
		{"?now=" + strings.Repeat("2", 4096), good, 400, "222...\"; use a time"},
	} {
		response := newBench(t).call(t, http.MethodPost, debug.Path+"/"+test.query, "author", "application/yaml", test.body)
		require.Equal(t, test.code, response.Code)
		require.Contains(t, requireStatus(t, response).Message, test.message)
	}
}

// aliases returns a short YAML text with aliases that expand to a very long text.
func aliases() string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return text
}

func TestEncodedBodiesAreRefused(t *testing.T) {
	b := newBench(t)
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, debug.Path, strings.NewReader(object("ns", "new", "")))
	request.Header.Set("Authorization", "Bearer author")
	request.Header.Set("Content-Encoding", "gzip")
	response := httptest.NewRecorder()
	b.handler.ServeHTTP(response, request)
	require.Equal(t, http.StatusUnsupportedMediaType, response.Code)
}

// TestRights checks that authorization requests have the resource and the name, so that rights to Placements are sufficient.
func TestRights(t *testing.T) {
	b := newBench(t)
	b.get(t, "p")
	b.call(t, http.MethodPost, debug.Path, "author", "application/yaml", object("ns", "new", ""))
	of := func(name, verb, object string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name}, Verb: verb, Namespace: "ns", Name: object, ResourceRequest: true,
			APIGroup: "cluster.open-cluster-management.io", APIVersion: "v1beta1", Resource: "placements",
		}
	}
	require.Empty(t, cmp.Diff([]authorizer.AttributesRecord{of("reader", "get", "p"), of("author", "create", "")}, b.asked))
}

func TestBrokenHub(t *testing.T) {
	b := newBench(t)
	b.broken = errors.New("the cache has not synced")
	for _, response := range []*httptest.ResponseRecorder{
		b.call(t, http.MethodGet, debug.Path+"/ns/p", "reader", "", ""),
		b.call(t, http.MethodPost, debug.Path+"/", "author", "application/yaml", object("ns", "new", "")),
	} {
		require.Equal(t, http.StatusInternalServerError, response.Code)
		require.Equal(t, metav1.StatusReasonInternalError, requireStatus(t, response).Reason)
	}
}

// TestTimeout checks that the answer to a request that exceeds its time limit has the partial result and an error.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *debug.Options) { o.Timeout = 200 * time.Millisecond })
		b.before = func(ctx context.Context) { <-ctx.Done() }
		response := b.call(t, http.MethodGet, debug.Path+"/ns/p", "reader", "", "")
		report := reportIn(t, response, http.StatusInternalServerError)
		require.Contains(t, report.Error, "scheduling was interrupted")
		require.True(t, report.Undecided)
		require.Contains(t, report.Status.Conditions[len(report.Status.Conditions)-1].Message, "no cluster is selected")
	})
}

func TestNewHandlerRefuses(t *testing.T) {
	_, err := debug.NewHandler(debug.Options{})
	require.ErrorContains(t, err, "must be set")
}

// TestPage checks that the page and its files need no token. Package internal/page tests their content. A browser test checks
// the script.
func TestPage(t *testing.T) {
	b := newBench(t)
	ask := func(method, path, authorization string) *httptest.ResponseRecorder {
		request := httptest.NewRequest(method, path, nil)
		if authorization != "" {
			request.Header.Set("Authorization", authorization)
		}
		recorder := httptest.NewRecorder()
		b.handler.ServeHTTP(recorder, request)
		return recorder
	}
	require.NoError(t, fs.WalkDir(page.Assets(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			answer := ask(method, debug.Path+"/"+name, "")
			require.Equal(t, http.StatusOK, answer.Code, name)
			require.Equal(t, page.Policy, answer.Header().Get("Content-Security-Policy"))
		}
		return nil
	}))
	require.Contains(t, ask(http.MethodGet, debug.Path+"/", "").Body.String(), "<!doctype html>")
	require.Contains(t, ask(http.MethodGet, debug.Path+"/", "Bearer reader").Body.String(), "<!doctype html>")
	require.Equal(t, "./placements/", ask(http.MethodGet, debug.Path, "").Header().Get("Location"))
	require.JSONEq(t, `{"backend": "placements"}`, ask(http.MethodGet, debug.Path+"/configuration.json", "").Body.String())
	for _, path := range []string{"/index.htm", "/src/none.js", "/src", "/src/", "/..", "/ns/index.html", "-index.html"} {
		require.Equal(t, http.StatusUnauthorized, ask(http.MethodGet, debug.Path+path, "").Code, path)
	}
	require.Equal(t, http.StatusUnauthorized, ask(http.MethodPost, debug.Path+"/index.html", "").Code)
	require.Empty(t, b.asked)
}

// TestPlacementWithTheNameOfAFile checks that a file of the page hides no Placement of the same name.
func TestPlacementWithTheNameOfAFile(t *testing.T) {
	b := newBench(t)
	files, err := fs.Glob(page.Assets(), "*/*.js")
	require.NoError(t, err)
	for _, name := range append(files, "ns/p") {
		namespace, object, _ := strings.Cut(name, "/")
		b.change(t, "placements: [{metadata: {namespace: "+namespace+", name: "+object+"}}]")
		answer := reportIn(t, b.call(t, http.MethodGet, debug.Path+"/"+name, "root", "", ""), http.StatusOK)
		require.Equal(t, object, answer.Placement.Name)
	}
}

// TestBounds checks that an answer has a bounded size, however many clusters are removed and however long the reasons are. Each
// removed cluster can still be requested by name.
func TestBounds(t *testing.T) {
	const maxRemoved = report.MaxRemoved
	b := newBench(t)
	for i := range 3 * maxRemoved {
		b.snapshot.Clusters = append(b.snapshot.Clusters, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%06d", i)}})
	}
	long := fmt.Sprintf(`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["%s"] == ""']}}}]`, strings.Repeat("ü", 5000))
	response := b.call(t, http.MethodPost, debug.Path+"/", "author", "application/yaml", object("ns", "new", long))
	require.Less(t, response.Body.Len(), 2<<20)
	report := reportIn(t, response, http.StatusOK)
	require.Len(t, report.Filters[0].Removed, maxRemoved)
	require.Equal(t, 3*maxRemoved+3, report.Filters[0].Count)
	for _, removal := range report.Filters[0].Removed {
		require.LessOrEqual(t, len(removal.Reason), 1<<10+3)
	}
	last := fmt.Sprintf("many-%06d", 3*maxRemoved-1)
	report = reportIn(t, b.call(t, http.MethodPost, debug.Path+"/?cluster="+last, "author", "application/yaml", object("ns", "new", long)), http.StatusOK)
	require.Equal(t, last, report.Filters[0].Removed[0].Cluster)
}

// queue is a bench whose decisions take a given time.
type queue struct {
	*bench
	t       *testing.T
	asking  sync.WaitGroup
	mutex   sync.Mutex
	running map[string]int
	// mostOfOne is the largest number of concurrent decisions of one namespace so far. mostOfAll is the largest total number.
	mostOfOne, mostOfAll int
	// done has the namespaces of completed decisions, in the order of completion.
	done []string
}

// newQueue returns a queue whose hub has a Placement p in each of the namespaces. Each decision takes the time takes.
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

// ask requests a Placement after all earlier requests have arrived. answered is called with the answer.
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

// TestNamespacesTakeTurns checks that many requests for one namespace don't delay requests for another namespace.
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

// TestWaitingEnds checks that waiting requests time out, and that requests beyond the limit are refused.
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
					if !strings.Contains(body, "8 requests for Placements of the namespace slow are waiting") {
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

// TestOverrun checks that the answer is a report and not an error if evaluations take too long.
func TestOverrun(t *testing.T) {
	b := newBench(t)
	b.change(t, `placements: [{metadata: {namespace: ns, name: slow}, spec: {predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["true"]}}}]}}]`)
	b.limit = func(ctx context.Context) (context.Context, context.CancelFunc) {
		return placement.WithDeadline(ctx, 0, 2*time.Second)
	}
	report := b.get(t, "slow")
	require.True(t, report.Undecided)
	require.Empty(t, report.Error)
	require.Equal(t, 3, report.Filters[0].Count)
	require.Equal(t, "is not evaluated yet", report.Filters[0].Removed[0].Reason)
	condition := report.Status.Conditions[1]
	require.Equal(t, wellknown.ConditionEvaluationFailed, condition.Type)
	require.Contains(t, condition.Message, "The evaluation takes longer than 2s on all clusters together; no cluster is selected")
}
