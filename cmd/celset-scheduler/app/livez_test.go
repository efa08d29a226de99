// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"
)

// ask sends a request through the filters that kube-scheduler's server has.
func ask(t *testing.T, a authorizer.Authorizer, path string) (int, string) {
	t.Helper()
	handler := genericapifilters.WithAuthorization(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }), a, scheme.Codecs)
	handler = genericapifilters.WithRequestInfo(handler, &request.RequestInfoFactory{})
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

func TestLivezFailsWithCheck(t *testing.T) {
	var failure error
	a := newLivez(nil, func() error { return failure })
	for _, path := range []string{"/livez", "/healthz", "/readyz", "/metrics"} {
		code, body := ask(t, a, path)
		require.Equal(t, http.StatusOK, code, path)
		require.Equal(t, "ok", body)
	}
	failure = errors.New("a scheduling cycle has made no progress")
	for _, path := range []string{"/livez", "/livez?verbose", "/healthz"} {
		code, body := ask(t, a, path)
		require.Equal(t, http.StatusInternalServerError, code, path)
		require.Contains(t, body, "a scheduling cycle has made no progress")
	}
	for _, path := range []string{"/readyz", "/metrics"} {
		code, _ := ask(t, a, path)
		require.Equal(t, http.StatusOK, code, "what is wrong is to be found out: %s", path)
	}
}

// Who may ask for what is the inner authorizer's matter.
func TestLivezAsksInner(t *testing.T) {
	a := newLivez(authorizerfactory.NewAlwaysDenyAuthorizer(), func() error { return nil })
	code, _ := ask(t, a, "/livez")
	require.Equal(t, http.StatusForbidden, code)
	require.False(t, a.ConditionsAwareAuthorize(t.Context(), authorizer.AttributesRecord{Path: "/metrics"}).IsAllow())
}
