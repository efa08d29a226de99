// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history finds out whether what programs did to claims can be explained at all:
// whether there is an order of their writes, each between its beginning and its end, in
// which no device is given to a claim while another one has it, and in which reads see
// what was written. That is linearizability, and porcupine decides it.
//
//	h := history.New()
//	transport = h.Record("scheduler", transport)    // one for each program
//	h.Read(claims, began)                           // now and then: what was listed since began
//	verdict := h.Check(time.Minute)
//	require.NoError(t, verdict.Err())
//
// Package ledger asks the same of what was stored, which a watch tells. Here it is asked
// of what programs were told, by who stands between them and the API server: an answer
// that contradicts another one is found, and a write that was acknowledged and is not
// there.
//
// # Operations
//
// A write of a claim, of its status or of anything else, leaves the claim with devices or
// without. It is applied if the API server said so. It is refused if the API server said
// that, and then did nothing. What the API server did not answer, or with an error of its
// own, is unknown: it has happened at one time or not at all; but not after a later
// version of the claim was there, because writes carry the version that they change.
//
// Devices don't matter to each other, so the history of each is checked by itself.
package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/celset/celset/test/internal/ledger"
)

// History is what programs did to claims. It is safe for concurrent use.
type History struct {
	began time.Time

	mu         sync.Mutex
	operations []*Operation
	counts     map[string]int
	// underWay are writes that have begun, each with a channel that is closed when it is entered.
	underWay map[*Operation]chan struct{}
	// problems are answers that could not be understood.
	problems []string
}

// New returns an empty history that begins now.
func New() *History {
	return &History{began: time.Now(), counts: map[string]int{}, underWay: map[*Operation]chan struct{}{}}
}

// Store writes the history as JSON.
func (h *History) Store(w io.Writer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(h.operations)
}

// Read enters what was listed with a quorum since a moment: the claims that there were.
func (h *History) Read(claims []resourceapi.ResourceClaim, began time.Time) {
	owners := map[string]string{}
	for i := range claims {
		for _, device := range ledger.DevicesOf(&claims[i]) {
			if owner := owners[device]; owner != "" {
				owners[device] = owner + "," + string(claims[i].UID)
			} else {
				owners[device] = string(claims[i].UID)
			}
		}
	}
	h.enter(&Operation{Program: "reader", Verb: "list resourceclaims", Owners: owners, Outcome: Applied, Start: began.Sub(h.began), End: time.Since(h.began)})
}

// Begin drops what there is so far: from now on claims have the devices that were listed
// since a moment. Writes that are under way are entered when they end.
func (h *History) Begin(claims []resourceapi.ResourceClaim, began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations, h.problems = nil, nil
	for i := range claims {
		o := &Operation{Program: "before", Verb: "list resourceclaims", Outcome: Applied, Version: versionOf(&claims[i]), Start: began.Sub(h.began), End: time.Since(h.began)}
		o.name(&claims[i])
		h.operations = append(h.operations, o)
	}
}

// Wait waits until all writes are entered that have begun by now. What was read may show them before they have
// ended, and a history without them does not explain that.
func (h *History) Wait(ctx context.Context) error {
	h.mu.Lock()
	underWay := maps.Clone(h.underWay)
	h.mu.Unlock()
	for o, entered := range underWay {
		select {
		case <-entered:
		case <-ctx.Done():
			return fmt.Errorf("%s of %s has not ended: %w", o.Verb, o.Claim, context.Cause(ctx))
		}
	}
	return nil
}

// begin notes that a write is under way, until end is called.
func (h *History) begin(o *Operation) (end func()) {
	entered := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.underWay[o] = entered
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.underWay, o)
		close(entered)
	}
}

func (h *History) enter(o *Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
	h.counts[o.Verb+", "+string(o.Outcome)]++
}

// refused counts a write that has done nothing, by the code of the answer.
func (h *History) refused(o *Operation, code int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[fmt.Sprintf("%s, refused with %d", o.Verb, code)]++
}

func (h *History) problem(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.problems = append(h.problems, fmt.Sprintf(format, args...))
}

// lastUID is the UID of the claim that had a name last.
func (h *History) lastUID(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range slices.Backward(h.operations) {
		if o.Claim == name && o.UID != "" {
			return o.UID
		}
	}
	return ""
}

// Counts are the operations so far, also those that were dropped, by verb and outcome, and the writes that were
// refused.
func (h *History) Counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.counts)
}

// until is when what is unknown can't happen any more: after a later version of the claim
// was there.
func (h *History) until(unknown *Operation) time.Duration {
	end := time.Duration(-1)
	for _, o := range h.operations {
		if o.UID == unknown.UID && o.Outcome == Applied && !o.isRead() && unknown.Base > 0 && o.Version > unknown.Base && (end < 0 || o.End < end) {
			end = o.End
		}
	}
	return end
}

// devices are all that any operation names, sorted.
func (h *History) devices() []string {
	var all []string
	for _, o := range h.operations {
		all = append(all, o.Devices...)
		for device := range o.Owners {
			all = append(all, device)
		}
	}
	slices.SortFunc(all, strings.Compare)
	return slices.Compact(all)
}

// Outcome is what is known of a write.
type Outcome string

// What can be known.
const (
	// Applied says that the API server has stored the write.
	Applied Outcome = "applied"
	// Unknown says that it may have, once, at any time since the write began.
	Unknown Outcome = "unknown"
)

// Operation is a write of a claim, or what was read of all claims. Those that were refused
// have done nothing and are none.
type Operation struct {
	// Program is who made it, Verb what it asked for: "update resourceclaims/status".
	Program string `json:"program"`
	Verb    string `json:"verb"`
	// Claim is the name of the claim that was written, "namespace/name", UID its UID.
	Claim string `json:"claim,omitempty"`
	UID   string `json:"uid,omitempty"`
	// Devices are what the claim has after the write: "driver/pool/device".
	Devices []string `json:"devices,omitempty"`
	// Owners are the UIDs of claims by device, as they were read; two with a comma.
	Owners  map[string]string `json:"owners,omitempty"`
	Outcome Outcome           `json:"outcome"`
	// Gone says that there is no claim any more.
	Gone bool `json:"gone,omitempty"`
	// Base is the version that the write changes, Version what it made of it; zero if that
	// is not known.
	Base    uint64 `json:"base,omitempty"`
	Version uint64 `json:"version,omitempty"`
	// Start and End are times since the history began. What is unknown has no end.
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
}

func (o *Operation) isRead() bool { return o.Owners != nil }

// String tells the operation in a line.
func (o *Operation) String() string {
	if o.isRead() {
		return fmt.Sprintf("%s reads %d devices that are in use", o.Program, len(o.Owners))
	}
	devices := "no devices"
	if len(o.Devices) > 0 {
		devices = strings.Join(o.Devices, ", ")
	}
	return fmt.Sprintf("%s: %s %s with %s (%s)", o.Program, o.Verb, o.Claim, devices, o.Outcome)
}

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
