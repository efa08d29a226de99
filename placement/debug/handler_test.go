// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/celset/celset/placement/debug"
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
		{"?now=" + strings.Repeat("2", 4096), good, 400, "222...\"; give a time"},
	} {
		response := newBench(t).call(t, http.MethodPost, debug.Path+"/"+test.query, "author", "application/yaml", test.body)
		require.Equal(t, test.code, response.Code)
		require.Contains(t, requireStatus(t, response).Message, test.message)
	}
}

// aliases is a short text that stands for a very long one.
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

// What is asked of the API server names the resource, so that rights to Placements
// are enough.
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

// An answer that takes too long says so, with what is known.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(o *debug.Options) { o.Timeout = 200 * time.Millisecond })
		b.before = func(ctx context.Context) { <-ctx.Done() }
		response := b.call(t, http.MethodGet, debug.Path+"/ns/p", "reader", "", "")
		report := reportIn(t, response, http.StatusInternalServerError)
		require.Contains(t, report.Error, "scheduling was interrupted")
		require.True(t, report.Stands)
		require.Contains(t, report.Status.Conditions[len(report.Status.Conditions)-1].Message, "the former decision stands")
	})
}

func TestNewHandlerRefuses(t *testing.T) {
	_, err := debug.NewHandler(debug.Options{})
	require.ErrorContains(t, err, "must be given")
}

// TestPage is about what the page says and may do; what it does is tested in a browser.
func TestPage(t *testing.T) {
	b := newBench(t)
	for _, path := range []string{debug.Path, debug.Path + "/"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			recorder := httptest.NewRecorder()
			b.handler.ServeHTTP(recorder, httptest.NewRequest(method, path, nil))
			require.Equal(t, http.StatusOK, recorder.Code, "nobody has to say who it is")
			require.Equal(t, "text/html; charset=utf-8", recorder.Header().Get("Content-Type"))
			policy := recorder.Header().Get("Content-Security-Policy")
			require.Contains(t, policy, "default-src 'none'; script-src 'sha256-")
			require.NotContains(t, policy, "unsafe")
			require.Equal(t, "nosniff", recorder.Header().Get("X-Content-Type-Options"))
			require.Equal(t, "no-referrer", recorder.Header().Get("Referrer-Policy"))
			if method == http.MethodHead {
				require.Empty(t, recorder.Body.String())
				continue
			}
			page := recorder.Body.String()
			require.True(t, strings.HasPrefix(page, "<!doctype html>"))
			require.Empty(t, regexp.MustCompile(`(?i)(https?:)?//[a-z0-9]+\.[a-z]`).FindAllString(page, -1), "it loads nothing from elsewhere")
			require.Empty(t, regexp.MustCompile(`(?i)innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|localStorage|sessionStorage|document\.cookie`).FindAllString(page, -1),
				"what is told is never a part of the page's structure, and the token is kept nowhere")
		}
	}
	require.Empty(t, b.asked)
}

// However many clusters are removed, for however long reasons, the answer is bounded;
// and every one of them can be asked for.
func TestBounds(t *testing.T) {
	b := newBench(t)
	for i := range 3 * debug.MaxRemoved {
		b.snapshot.Clusters = append(b.snapshot.Clusters, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("many-%06d", i)}})
	}
	long := fmt.Sprintf(`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["%s"] == ""']}}}]`, strings.Repeat("ü", 5000))
	response := b.call(t, http.MethodPost, debug.Path+"/", "author", "application/yaml", object("ns", "new", long))
	require.Less(t, response.Body.Len(), 2<<20)
	report := reportIn(t, response, http.StatusOK)
	require.Len(t, report.Filters[0].Removed, debug.MaxRemoved)
	require.Equal(t, 3*debug.MaxRemoved+3, report.Filters[0].Count)
	for _, removal := range report.Filters[0].Removed {
		require.LessOrEqual(t, len(removal.Reason), 1<<10+3)
	}
	last := fmt.Sprintf("many-%06d", 3*debug.MaxRemoved-1)
	report = reportIn(t, b.call(t, http.MethodPost, debug.Path+"/?cluster="+last, "author", "application/yaml", object("ns", "new", long)), http.StatusOK)
	require.Equal(t, last, report.Filters[0].Removed[0].Cluster)
}
