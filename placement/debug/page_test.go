// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/placement/debug"
)

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

func TestWithoutAPredicate(t *testing.T) {
	b := newBench(t)
	b.store(t, "picky", `
predicates:
- requiredClusterSelector: {labelSelector: {matchLabels: {missing: "yes"}}}
- requiredClusterSelector: {labelSelector: {matchExpressions: [{key: name, operator: DoesNotExist}]}}
`)
	decide := func(query string) (int, string, *debug.Report) {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, debug.Path+"/ns/picky"+query, nil)
		request.Header.Set("Authorization", "Bearer reader")
		b.handler.ServeHTTP(recorder, request)
		report := &debug.Report{}
		if recorder.Code == http.StatusOK {
			require.NoError(t, json.Unmarshal(recorder.Body.Bytes(), report))
		}
		return recorder.Code, recorder.Body.String(), report
	}
	code, body, all := decide("")
	require.Equal(t, http.StatusOK, code, body)
	code, body, first := decide("?without=0")
	require.Equal(t, http.StatusOK, code, body)
	code, body, second := decide("?without=1")
	require.Equal(t, http.StatusOK, code, body)
	require.Len(t, all.Placement.Spec.Predicates, 2)
	require.Equal(t, all.Placement.Spec.Predicates[1:], first.Placement.Spec.Predicates)
	require.Equal(t, all.Placement.Spec.Predicates[:1], second.Placement.Spec.Predicates)
	require.Len(t, all.Candidates, 2, "one of several predicates has to match")
	require.Len(t, first.Candidates, 2)
	require.Empty(t, second.Candidates)
	for _, wrong := range []string{"2", "-1", "x", ""} {
		code, body, _ = decide("?without=" + wrong)
		require.Equal(t, http.StatusBadRequest, code)
		require.Contains(t, body, "names no predicate: the Placement has 2, counted from 0")
	}
}
