// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/celset/celset/placement/debug"
)

func TestRefusals(t *testing.T) {
	const yaml, json = "application/yaml", "application/json"
	good := object("ns", "new", "")
	tests := map[string]struct {
		method, path, who, contentType, body string
		code                                 int
		message                              string
	}{
		"nobody":               {"GET", "/ns/p", "", "", "", 401, "Unauthorized"},
		"nobody, no such path": {"GET", "/a/b/c", "", "", "", 401, "Unauthorized"},
		"forged":               {"GET", "/ns/p", "forged", "", "", 401, "Unauthorized"},
		"cannot ask who":       {"GET", "/ns/p", "unanswered", "", "", 500, "the log says why"},
		"cannot ask what":      {"GET", "/ns/p", "broken", "", "", 500, "the log says why"},
		"may not get":          {"GET", "/ns/p", "author", "", "", 403, `user "author" cannot get resource "placements" in API group "cluster.open-cluster-management.io" in the namespace "ns"`},
		"denied":               {"GET", "/ns/p", "stranger", "", "", 403, "go away"},
		"may not get, missing": {"GET", "/ns/q", "author", "", "", 403, `placements.cluster.open-cluster-management.io "q" is forbidden`},
		"another namespace":    {"GET", "/other/p", "reader", "", "", 403, `in the namespace "other"`},
		"may not create":       {"POST", "/", "reader", yaml, good, 403, `user "reader" cannot create`},
		"create elsewhere":     {"POST", "/", "author", yaml, object("other", "new", ""), 403, `in the namespace "other"`},
		"no such Placement":    {"GET", "/ns/q", "reader", "", "", 404, `placements.cluster.open-cluster-management.io "q" not found`},
		"too short":            {"GET", "/ns", "reader", "", "", 404, "there is no path /debug/placements/ns; GET /debug/placements/<namespace>/<name>"},
		"too long":             {"GET", "/ns/p/", "reader", "", "", 404, "there is no path"},
		"no namespace":         {"GET", "//p", "reader", "", "", 404, "there is no path"},
		"hidden slash":         {"GET", "/ns/p%2Fq", "reader", "", "", 404, "there is no path"},
		"another beginning":    {"GET", "s/ns/p", "reader", "", "", 404, "there is no path"},
		"post to one":          {"POST", "/ns/p", "author", yaml, good, 405, "the method POST is not allowed on /debug/placements/ns/p; use GET"},
		"delete":               {"DELETE", "/ns/p", "reader", "", "", 405, "use GET"},
		"a form":               {"POST", "/", "author", "application/x-www-form-urlencoded", good, 415, "send a Placement as application/json or application/yaml"},
		"protobuf":             {"POST", "/", "author", "application/vnd.kubernetes.protobuf", good, 415, "send a Placement as"},
		"no type at all":       {"POST", "/", "author", "?;", good, 415, `the body is of type "?;"`},
		"too large":            {"POST", "/", "author", yaml, good + strings.Repeat("#", 128<<10), 413, "the limit is 131072 bytes"},
		"empty":                {"POST", "/", "author", json, "", 400, "the body is no Placement"},
		"not JSON":             {"POST", "/", "author", json, good, 400, "the body is no Placement"},
		"not YAML":             {"POST", "/", "author", yaml, "{", 400, "the body is no Placement"},
		"aliases of aliases":   {"POST", "/", "author", yaml, aliases(), 400, "excessive aliasing"},
		"unknown field":        {"POST", "/", "author", yaml, object("ns", "new", "clusters: 1"), 400, `unknown field "spec.clusters"`},
		"duplicate field":      {"POST", "/", "author", json, `{"kind": "Placement", "spec": {"sortBy": "Score", "sortBy": "ClusterName"}}`, 400, `duplicate field "spec.sortBy"`},
		"wrong type":           {"POST", "/", "author", yaml, object("ns", "new", "clusterSets: {}"), 400, "cannot unmarshal object"},
		"another kind":         {"POST", "/", "author", json, `{"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision"}`, 400, "give a Placement of cluster.open-cluster-management.io/v1beta1"},
		"foreign kind":         {"POST", "/", "author", json, `{"apiVersion": "v1", "kind": "Pod"}`, 400, "no kind \"Pod\""},
		"another version":      {"POST", "/", "author", yaml, strings.Replace(good, "v1beta1", "v1alpha1", 1), 400, "v1alpha1"},
		"without namespace":    {"POST", "/", "author", yaml, object("", "new", ""), 400, `metadata.namespace: ""`},
		"all namespaces":       {"POST", "/", "author", yaml, object("*", "new", ""), 400, `metadata.namespace: "*"`},
		"without name":         {"POST", "/", "author", yaml, object("ns", "", ""), 400, `metadata.name: ""`},
		"no time":              {"GET", "/ns/p?now=", "reader", "", "", 400, `the parameter now is ""; give a time from 1970 on`},
		"a + in a time":        {"GET", "/ns/p?now=2026-08-01T14:00:00+02:00", "reader", "", "", 400, `the parameter now is "2026-08-01T14:00:00 02:00"; give a time`},
		"too early":            {"POST", "/?now=0001-01-01T00:00:00Z", "author", yaml, good, 400, "give a time from 1970 on"},
		"a long time":          {"POST", "/?now=" + strings.Repeat("2", 4096), "author", yaml, good, 400, "222...\"; give a time"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.before = func(context.Context) { t.Error("the Placement is decided") }
			response := b.call(t, test.method, debug.Path+test.path, test.who, test.contentType, test.body)
			require.Equal(t, test.code, response.Code, response.Body)
			status := requireStatus(t, response)
			require.EqualValues(t, test.code, status.Code)
			require.Contains(t, status.Message, test.message)
			switch test.code {
			case http.StatusMethodNotAllowed:
				require.Contains(t, test.message, response.Header().Get("Allow"))
			case http.StatusUnauthorized:
				require.Equal(t, "Bearer", response.Header().Get("WWW-Authenticate"))
			case http.StatusForbidden, http.StatusInternalServerError:
				require.NotContains(t, status.Message, "tokenreviews")
			}
		})
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

func requireStatus(t *testing.T, response *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var status metav1.Status
	require.NoError(t, json.NewDecoder(response.Body).Decode(&status))
	require.Equal(t, metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, status.TypeMeta)
	require.Equal(t, metav1.StatusFailure, status.Status)
	require.NotEmpty(t, status.Reason)
	return status
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
	b.try(t, ``)
	of := func(name, verb, object string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name}, Verb: verb, Namespace: "ns", Name: object, ResourceRequest: true,
			APIGroup: "cluster.open-cluster-management.io", APIVersion: "v1beta1", Resource: "placements",
		}
	}
	require.Empty(t, cmp.Diff([]authorizer.AttributesRecord{of("reader", "get", "p"), of("author", "create", "")}, b.asked))
}

func TestMediaTypes(t *testing.T) {
	b := newBench(t)
	for contentType, body := range map[string]string{
		"":                                `{"metadata": {"namespace": "ns", "name": "new"}}`,
		"application/json":                `{"metadata": {"namespace": "ns", "name": "new"}}`,
		"application/json; charset=utf-8": `{"metadata": {"namespace": "ns", "name": "new"}}`,
		"application/yaml":                object("ns", "new", ""),
	} {
		for _, path := range []string{debug.Path, debug.Path + "/"} {
			report := reportIn(t, b.call(t, http.MethodPost, path, "author", contentType, body), http.StatusOK)
			require.Equal(t, "new", report.Placement.Name)
			require.Len(t, report.Candidates, 2)
		}
	}
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
