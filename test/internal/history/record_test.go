// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

type answers func(*http.Request) (*http.Response, error)

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// encoded returns a claim in an encoding that client-go uses: JSON, protobuf or CBOR.
func encoded(t *testing.T, claim *resourceapi.ResourceClaim, media string) []byte {
	t.Helper()
	return encodedAs(t, claim, resourceapi.SchemeGroupVersion, media)
}

// failure returns an error response of an API server in the encoding.
func failure(t *testing.T, media, message string) []byte {
	t.Helper()
	return encodedAs(t, &metav1.Status{Status: metav1.StatusFailure, Message: message}, schema.GroupVersion{Version: "v1"}, media)
}

func encodedAs(t *testing.T, object runtime.Object, version schema.GroupVersion, media string) []byte {
	t.Helper()
	info, found := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	require.True(t, found)
	content, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, version), object)
	require.NoError(t, err)
	return content
}

func allocated(version, device string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", ResourceVersion: version},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
			Results: []resourceapi.DeviceRequestAllocationResult{{Driver: "driver", Pool: "pool", Device: device}},
		}}},
	}
}

func finalized(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	claim.Finalizers = []string{"resource.kubernetes.io/delete-protection"}
	return claim
}

func ending(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return claim
}

func TestRecord(t *testing.T) {
	const status = "https://server/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/a/status"
	const claims = "https://server/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		sent, stored := encoded(t, allocated("4", "d"), media), encoded(t, allocated("5", "d"), media)
		applied := Operation{Program: "p", Claim: "ns/a", UID: "u", Devices: []string{"driver/pool/d"}, Outcome: Applied, Version: 5}
		unknown := Operation{Program: "p", Claim: "ns/a", UID: "u", Devices: []string{"driver/pool/d"}, Outcome: Unknown, Base: 4}
		gone := Operation{Program: "p", Claim: "ns/a", UID: "u", Outcome: Applied, Gone: true}
		ended := Operation{Program: "p", Claim: "ns/a", UID: "u", Outcome: Applied, Version: 5, Gone: true}
		for name, tc := range map[string]struct {
			method, url string
			body        []byte
			code        int // 0 means that the connection ends without a response
			answer      []byte
			want        *Operation
			verb        string
			refused     string // the counter of rejected writes that must increase
			problem     string
		}{
			"applied":            {method: http.MethodPut, url: status, body: sent, code: http.StatusOK, answer: stored, want: &applied, verb: "update resourceclaims/status"},
			"created":            {method: http.MethodPost, url: claims, body: sent, code: http.StatusCreated, answer: stored, want: &applied, verb: "create resourceclaims"},
			"patched":            {method: http.MethodPatch, url: status, body: []byte(`{"status":{}}`), code: http.StatusOK, answer: stored, want: &applied, verb: "patch resourceclaims/status"},
			"refused":            {method: http.MethodPut, url: status, body: sent, code: http.StatusConflict, answer: []byte(`{}`), refused: "update resourceclaims/status, refused with 409"},
			"refused by webhook": {method: http.MethodPut, url: status, body: sent, code: http.StatusServiceUnavailable, answer: failure(t, media, `admission webhook "w" denied the request: later`), refused: "update resourceclaims/status, refused with 503"},
			"webhook is down":    {method: http.MethodPut, url: status, body: sent, code: http.StatusInternalServerError, answer: failure(t, media, `Internal error occurred: failed calling webhook "w": EOF`), refused: "update resourceclaims/status, refused with 500"},
			"other failure":      {method: http.MethodPut, url: status, body: sent, code: http.StatusInternalServerError, answer: failure(t, media, "etcdserver: request timed out"), want: &unknown, verb: "update resourceclaims/status"},
			"error of server":    {method: http.MethodPut, url: status, body: sent, code: http.StatusInternalServerError, answer: []byte(`{}`), want: &unknown, verb: "update resourceclaims/status"},
			"no answer":          {method: http.MethodPut, url: status, body: sent, want: &unknown, verb: "update resourceclaims/status"},
			"patch, no answer":   {method: http.MethodPatch, url: status, body: []byte(`{"status":{"reservedFor":[]}}`)},
			"patch of devices":   {method: http.MethodPatch, url: status, body: []byte(`{"status":{"allocation":null}}`), problem: `a patch of devices, whose outcome is unknown: {"status":{"allocation":null}}`},
			"deleted":            {method: http.MethodDelete, url: claims + "/a", code: http.StatusOK, answer: stored, want: &gone, verb: "delete resourceclaims"},
			"deleted, a status":  {method: http.MethodDelete, url: claims + "/a", code: http.StatusOK, answer: []byte(`{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"u"}}`), want: &gone, verb: "delete resourceclaims"},
			"to be deleted":      {method: http.MethodDelete, url: claims + "/a", code: http.StatusOK, answer: encoded(t, ending(finalized(allocated("5", "d"))), media)},
			"deleted at once":    {method: http.MethodDelete, url: claims + "/a", code: http.StatusOK, answer: encoded(t, finalized(allocated("5", "d")), media), want: &gone, verb: "delete resourceclaims"},
			"deleted, no answer": {method: http.MethodDelete, url: claims + "/a", want: &Operation{Program: "p", Claim: "ns/a", Outcome: Unknown, Gone: true}, verb: "delete resourceclaims"},
			"last finalizer":     {method: http.MethodPut, url: claims + "/a", body: sent, code: http.StatusOK, answer: encoded(t, ending(allocated("5", "d")), media), want: &ended, verb: "update resourceclaims"},
			"read":               {method: http.MethodGet, url: claims + "/a", code: http.StatusOK, answer: stored},
			"dry run":            {method: http.MethodPut, url: status + "?dryRun=All", body: sent, code: http.StatusOK, answer: stored},
			"something else":     {method: http.MethodPut, url: "https://server/api/v1/namespaces/ns/pods/a", body: sent, code: http.StatusOK, answer: stored},
			"answer not a claim": {method: http.MethodPut, url: status, body: sent, code: http.StatusOK, answer: []byte(`{"kind":"Status","apiVersion":"v1"}`), problem: "the answer is no claim: it is a /v1, Kind=Status"},
			"request no claim":   {method: http.MethodPut, url: status, body: []byte("?"), problem: "the request has no claim"},
		} {
			t.Run(media+"/"+name, func(t *testing.T) {
				h := New()
				seen := []byte(nil)
				transport := h.Record("p", answers(func(r *http.Request) (*http.Response, error) {
					var err error
					if r.Body != nil {
						seen, err = io.ReadAll(r.Body)
						require.NoError(t, err)
					}
					if tc.code == 0 {
						return nil, errors.New("gone")
					}
					recorder := httptest.NewRecorder()
					recorder.WriteHeader(tc.code)
					_, err = recorder.Write(tc.answer)
					return recorder.Result(), err
				}))
				var body io.Reader
				if tc.body != nil {
					body = bytes.NewReader(tc.body)
				}
				request, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, body)
				require.NoError(t, err)
				response, err := transport.RoundTrip(request)
				require.Equal(t, tc.body, seen, "the API server gets all")
				if tc.code == 0 {
					require.EqualError(t, err, "gone")
				} else {
					require.NoError(t, err)
					answer, err := io.ReadAll(response.Body)
					require.NoError(t, err)
					require.NoError(t, response.Body.Close())
					require.True(t, bytes.Equal(tc.answer, answer), "the program gets all")
				}
				if tc.problem != "" {
					require.Len(t, h.problems, 1)
					require.Contains(t, h.problems[0], tc.problem)
					require.ErrorContains(t, h.Check(time.Minute).Err(), tc.problem)
				} else {
					require.Empty(t, h.problems)
				}
				if tc.want == nil {
					require.Empty(t, h.operations)
					if tc.refused != "" {
						require.Equal(t, map[string]int{tc.refused: 1}, h.Counts())
					}
					return
				}
				require.Len(t, h.operations, 1)
				got := *h.operations[0]
				require.LessOrEqual(t, got.Start, got.End)
				got.Start, got.End = 0, 0
				want := *tc.want
				want.Verb = tc.verb
				require.Equal(t, want, got)
				require.Equal(t, map[string]int{tc.verb + ", " + string(want.Outcome): 1}, h.Counts())
			})
		}
	}
}

func TestReadSeesTwoOwners(t *testing.T) {
	h := New()
	other := allocated("6", "d")
	other.UID = "v"
	h.Read([]resourceapi.ResourceClaim{*allocated("5", "d"), *other}, time.Now())
	require.Equal(t, map[string]string{"driver/pool/d": "u,v"}, h.operations[0].Owners)
	require.Equal(t, []string{"driver/pool/d"}, h.Check(time.Minute).Refused)
}

// TestWait checks that Wait waits for writes that have begun, because a read may show a write that has not ended.
func TestWait(t *testing.T) {
	h := New()
	stored, answered := make(chan struct{}), make(chan struct{})
	transport := h.Record("p", answers(func(*http.Request) (*http.Response, error) {
		close(stored)
		<-answered
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(encoded(t, allocated("5", "d"), runtime.ContentTypeJSON)))}, nil
	}))
	ended := make(chan error)
	go func() {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://server/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/a/status",
			bytes.NewReader(encoded(t, allocated("4", "d"), runtime.ContentTypeJSON)))
		if err == nil {
			var response *http.Response
			if response, err = transport.RoundTrip(q); err == nil {
				err = response.Body.Close()
			}
		}
		ended <- err
	}()
	<-stored
	h.Read([]resourceapi.ResourceClaim{*allocated("5", "d")}, time.Now())
	require.Equal(t, []string{"driver/pool/d"}, h.Check(time.Minute).Refused, "nobody is known to have written that")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, h.Wait(canceled), "update resourceclaims/status of ns/a has not ended: context canceled")
	close(answered)
	require.NoError(t, h.Wait(t.Context()))
	require.NoError(t, <-ended)
	require.NoError(t, h.Check(time.Minute).Err())
	require.NoError(t, h.Wait(t.Context()), "nothing is under way")
}
