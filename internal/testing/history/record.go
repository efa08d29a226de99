// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/celset/celset/internal/testing/ledger"
)

// Record returns a transport for what a program sends to the API server, which enters what
// it does to claims.
func (h *History) Record(program string, next http.RoundTripper) http.RoundTripper {
	return &recorder{history: h, program: program, next: next}
}

type recorder struct {
	history *History
	program string
	next    http.RoundTripper
}

var (
	requestInfo = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	writes      = sets.New("create", "update", "patch", "delete")
)

// RoundTrip passes everything on.
func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	info, err := requestInfo.NewRequestInfo(q)
	if err != nil || info.Resource != "resourceclaims" || !writes.Has(info.Verb) || q.URL.Query().Has("dryRun") {
		return r.next.RoundTrip(q)
	}
	body, err := read(&q.Body)
	if err != nil {
		return nil, err
	}
	// What is compressed here would have to be understood here.
	q.Header.Del("Accept-Encoding")
	h := r.history
	o := &Operation{
		Program: r.program, Verb: strings.TrimSuffix(info.Verb+" "+info.Resource+"/"+info.Subresource, "/"),
		Claim: info.Namespace + "/" + info.Name, Start: time.Since(h.began),
	}
	defer h.begin(o)()
	response, err := r.next.RoundTrip(q)
	var answer []byte
	if err == nil {
		answer, err = read(&response.Body)
	}
	o.End = time.Since(h.began)
	switch {
	case err != nil || response.StatusCode >= http.StatusInternalServerError && !refusedInAdmission(answer):
		r.unknown(o, info.Verb, body)
	case response.StatusCode < http.StatusMultipleChoices:
		r.applied(o, info.Verb, answer)
	default:
		h.refused(o, response.StatusCode)
	}
	return response, err
}

// refusedInAdmission tells whether an error of the server says that a webhook has refused the write, or could not be
// asked. Either happens before anything is stored, whatever the code.
func refusedInAdmission(answer []byte) bool {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(answer, nil, nil)
	if err != nil {
		return false
	}
	status, is := object.(*metav1.Status)
	return is && (strings.HasPrefix(status.Message, `admission webhook "`) ||
		strings.HasPrefix(status.Message, `Internal error occurred: failed calling webhook "`))
}

// applied enters a write that was answered: with the claim as it is now, or after a deletion
// with what the claim was, or that there is none.
func (r *recorder) applied(o *Operation, verb string, answer []byte) {
	o.Outcome = Applied
	if verb == "delete" {
		o.Gone = true
		r.deleted(o, answer)
		return
	}
	claim, err := decode(answer)
	if err != nil {
		r.history.problem("%s: the answer is no claim: %v", o, err)
		return
	}
	o.Version = versionOf(claim)
	o.name(claim)
	if claim.DeletionTimestamp != nil && len(claim.Finalizers) == 0 {
		// With the last finalizer the claim is gone, and the version is that of before.
		o.Devices, o.Gone = nil, true
	}
	r.history.enter(o)
}

// deleted enters that a claim is gone, unless it waits for its finalizers. An API server may delete one that has
// got a finalizer just now, without waiting for it: it looked before, and compares nothing but the UID.
func (r *recorder) deleted(o *Operation, answer []byte) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(answer, nil, nil)
	if err != nil {
		r.history.problem("%s: the answer is nothing that can be read: %v", o, err)
		return
	}
	switch gone := object.(type) {
	case *resourceapi.ResourceClaim:
		if gone.DeletionTimestamp != nil && len(gone.Finalizers) > 0 {
			return
		}
		o.UID = string(gone.UID)
	case *metav1.Status:
		if gone.Details != nil {
			o.UID = string(gone.Details.UID)
		}
	}
	r.history.enter(o)
}

// unknown enters a write of which is known what it should have done: that of a whole
// claim. Patches here take users from claims, and don't touch devices.
func (r *recorder) unknown(o *Operation, verb string, body []byte) {
	if verb == "patch" && bytes.Contains(body, []byte(`"allocation"`)) {
		r.history.problem("%s: a patch of devices, whose outcome is unknown: %s", o, body)
	}
	if verb == "delete" {
		o.Outcome, o.Gone = Unknown, true
		o.UID = r.history.lastUID(o.Claim)
		r.history.enter(o)
	}
	if verb != "update" {
		return
	}
	claim, err := decode(body)
	if err != nil {
		r.history.problem("%s: the request has no claim: %v", o, err)
		return
	}
	o.Outcome, o.Base = Unknown, versionOf(claim)
	o.name(claim)
	r.history.enter(o)
}

func (o *Operation) name(claim *resourceapi.ResourceClaim) {
	o.Claim, o.UID = claim.Namespace+"/"+claim.Name, string(claim.UID)
	o.Devices = ledger.DevicesOf(claim)
}

// read reads a body, and leaves one that can be read again.
func read(body *io.ReadCloser) ([]byte, error) {
	if *body == nil {
		return nil, nil
	}
	content, err := io.ReadAll(*body)
	if closed := (*body).Close(); err == nil {
		err = closed
	}
	*body = io.NopCloser(bytes.NewReader(content))
	return content, err
}

// decode takes JSON and what client-go uses otherwise.
func decode(content []byte) (*resourceapi.ResourceClaim, error) {
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		return nil, err
	}
	claim, ok := object.(*resourceapi.ResourceClaim)
	if !ok {
		return nil, fmt.Errorf("it is a %s", kind)
	}
	return claim, nil
}

func versionOf(object metav1.Object) uint64 {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}
