// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/debug"
)

// hub is an API server that answers reviews. A token is the name of a user. The user reader may get Placements. A TokenReview
// of the token "broken" fails.
type hub struct {
	mutex   sync.Mutex
	reviews []authorizationv1.SubjectAccessReviewSpec
}

func (h *hub) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch request.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		review := &authenticationv1.TokenReview{}
		_ = json.NewDecoder(request.Body).Decode(review)
		switch review.Spec.Token {
		case "forged":
			review.Status.Error = "invalid bearer token"
		case "broken":
			w.WriteHeader(http.StatusForbidden)
			answer = apierrors.NewForbidden(schema.GroupResource{Resource: "tokenreviews"}, "", errors.New("not you")).Status()
		default:
			review.Status.Authenticated, review.Status.User.Username = true, review.Spec.Token
		}
		if answer == nil {
			answer = review
		}
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		review := &authorizationv1.SubjectAccessReview{}
		_ = json.NewDecoder(request.Body).Decode(review)
		h.mutex.Lock()
		h.reviews = append(h.reviews, review.Spec)
		h.mutex.Unlock()
		review.Status.Allowed = review.Spec.User == "reader" && review.Spec.ResourceAttributes.Verb == "get"
		answer = review
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// empty is a hub without Placements.
type empty struct{}

func (empty) Placement(_ context.Context, key types.NamespacedName) (*clusterv1beta1.Placement, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "placements"}, key.Name)
}

func (empty) Schedule(context.Context, *clusterv1beta1.Placement, time.Time) (*placement.Result, error) {
	return nil, errors.New("nothing to decide")
}

func newManager(t *testing.T, url string) manager.Manager {
	t.Helper()
	mgr, err := manager.New(&rest.Config{Host: url}, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	require.NoError(t, err)
	return mgr
}

// freeAddress returns a loopback address with an unused port. It opens and closes a connection to this port, so that the kernel
// gives the port to no other program for a minute.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	connection, err := listener.Accept()
	require.NoError(t, err)
	require.NoError(t, connection.Close())
	return listener.Addr().String()
}

// call sends a request. It repeats the request until the server listens.
func call(t *testing.T, address, token string) (code int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	require.Eventually(t, func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+debug.Path+"/ns/p", nil)
		if err != nil {
			return false
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := client.Do(request)
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		code, body = response.StatusCode, string(content)
		return err == nil
	}, 2*time.Minute, 20*time.Millisecond)
	return code, body
}

func TestServer(t *testing.T) {
	h := &hub{}
	api := httptest.NewServer(h)
	defer api.Close()
	mgr, address := newManager(t, api.URL), freeAddress(t)
	require.NoError(t, Add(mgr, Options{Address: address, Placements: empty{}}))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()

	for token, want := range map[string]int{
		"":       http.StatusUnauthorized,
		"forged": http.StatusUnauthorized,
		"broken": http.StatusInternalServerError,
		"author": http.StatusForbidden,
		"reader": http.StatusNotFound,
	} {
		code, body := call(t, address, token)
		require.Equal(t, want, code, body)
	}
	require.Len(t, h.reviews, 2)
	for _, review := range h.reviews {
		require.Equal(t, &authorizationv1.ResourceAttributes{
			Namespace: "ns", Verb: "get", Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placements", Name: "p",
		}, review.ResourceAttributes)
		require.Nil(t, review.NonResourceAttributes)
	}
	stop()
	require.NoError(t, <-done)
	_, err := net.Dial("tcp", address)
	require.Error(t, err, "it has stopped")
}

func TestRunsWithoutBeingLeader(t *testing.T) {
	require.False(t, (&server{}).NeedLeaderElection())
}

func TestAddressInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	err = (&server{address: listener.Addr().String()}).Start(t.Context())
	require.ErrorContains(t, err, "debugging of placement: listen tcp")
}

func TestCertificates(t *testing.T) {
	mgr := newManager(t, "http://127.0.0.1:1")
	config, err := certificates(mgr, "")
	require.NoError(t, err)
	require.Len(t, config.Certificates, 1)
	require.EqualValues(t, tls.VersionTLS12, config.MinVersion)

	dir := t.TempDir()
	err = Add(mgr, Options{Address: "127.0.0.1:0", CertDir: dir, Placements: empty{}})
	require.ErrorContains(t, err, "certificate of the debug server: open "+filepath.Join(dir, certFile))
	cert, key, err := certutil.GenerateSelfSignedCertKey("debug.example", nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, certFile), cert, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, keyFile), key, 0o600))
	config, err = certificates(mgr, dir)
	require.NoError(t, err)
	given, err := config.GetCertificate(nil)
	require.NoError(t, err)
	require.NotEmpty(t, given.Certificate)

	require.ErrorContains(t, Add(mgr, Options{Address: "127.0.0.1:0"}), "must be set")
}
