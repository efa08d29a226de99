// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history checks whether the recorded operations of programs on claims are linearizable. They are if the operations can
// be put in an order where each takes effect between its start and its end, no device belongs to two claims, and each read
// returns the last written state. The library porcupine searches for such an order.
//
//	h := history.New()
//	transport = h.Record("scheduler", transport)    // one for each program
//	h.Read(claims, began)                           // now and then: what was listed since began
//	verdict := h.Check(time.Minute)
//	require.NoError(t, verdict.Err())
//
// Package ledger checks the stored state, as a watch reports it. Package history checks the responses of API servers to
// programs, which a proxy records. So it also finds contradictory responses, and acknowledged writes that were lost.
//
// # Operations
//
// A write sets the devices of a claim, if any. If the API server returned success, the write is applied. If the API server
// rejected the write, it had no effect. After a server error, or without a response, the outcome is unknown: the write was
// applied once or never. A write names the version that it changes, so it can't be applied after a later version exists.
//
// Devices are independent, so the history of each device is checked separately.
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

// A History records the operations of programs on claims, and checks them. It is safe for concurrent use.
type History struct {
	began time.Time

	mu         sync.Mutex
	operations []*Operation
	counts     map[string]int
	// underWay maps each write that has begun to a channel. The channel is closed when the write is added to the history.
	underWay map[*Operation]chan struct{}
	// problems are responses that could not be parsed.
	problems []string
}

// New returns an empty history. Its times count from now.
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

// Read adds a read of all claims to the history: the result of a list request that began at the time began. The list must be
// consistent (resourceVersion "").
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

// Begin removes all operations, and starts again with a list of all claims whose request began at the time began. Writes that
// have not ended yet are added when they end.
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

// Wait waits until all writes that have begun are in the history. A read may already show such a write, and can't be explained
// without it.
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

// begin records that a write has begun. The caller must call end when the write has ended.
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

// refused counts a rejected write under the status code.
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

// lastUID returns the UID that the last operation on a claim with this name had.
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

// Counts returns the number of operations by verb and outcome, including operations that Begin has removed, and the number of
// rejected writes.
func (h *History) Counts() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.counts)
}

// until returns the time after which a write with unknown outcome can't take effect, because a later version of the claim
// exists. It returns -1 if there is no such time.
func (h *History) until(unknown *Operation) time.Duration {
	end := time.Duration(-1)
	for _, o := range h.operations {
		if o.UID == unknown.UID && o.Outcome == Applied && !o.isRead() && unknown.Base > 0 && o.Version > unknown.Base && (end < 0 || o.End < end) {
			end = o.End
		}
	}
	return end
}

// devices returns the names of all devices in the history, sorted.
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

// An Outcome says whether a write has taken effect.
type Outcome string

// The possible outcomes of a write.
const (
	// Applied means that the API server has returned success.
	Applied Outcome = "applied"
	// Unknown means that the API server may have stored the write once, at any time since the write began.
	Unknown Outcome = "unknown"
)

// An Operation is a write of a claim, or a read of all claims. A rejected write is no operation, because it has no effect.
type Operation struct {
	// Program is the name of the program that sent the request. Verb describes the request, for example "update
	// resourceclaims/status".
	Program string `json:"program"`
	Verb    string `json:"verb"`
	// Claim is "namespace/name" of the written claim. UID is its UID.
	Claim string `json:"claim,omitempty"`
	UID   string `json:"uid,omitempty"`
	// Devices are the devices of the claim after the write, each "driver/pool/device".
	Devices []string `json:"devices,omitempty"`
	// Owners maps, for a read, each allocated device to the UID of its claim. If two claims have the device, the UIDs are
	// separated by a comma.
	Owners  map[string]string `json:"owners,omitempty"`
	Outcome Outcome           `json:"outcome"`
	// Gone is set if the claim does not exist after the write.
	Gone bool `json:"gone,omitempty"`
	// Base is the version that the write is based on. Version is the version that the write has made. Zero means that it is not
	// known.
	Base    uint64 `json:"base,omitempty"`
	Version uint64 `json:"version,omitempty"`
	// Start and End are durations since the beginning of the history. A write with unknown outcome has no End.
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
}

func (o *Operation) isRead() bool { return o.Owners != nil }

// String describes the operation in one line.
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

// Record returns a transport for the requests of a program. It adds the program's operations on claims to the history.
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

// RoundTrip forwards the request and records it.
func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	info, err := requestInfo.NewRequestInfo(q)
	if err != nil || info.Resource != "resourceclaims" || !writes.Has(info.Verb) || q.URL.Query().Has("dryRun") {
		return r.next.RoundTrip(q)
	}
	body, err := read(&q.Body)
	if err != nil {
		return nil, err
	}
	// Ask for uncompressed responses, because this code reads them.
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

// refusedInAdmission reports whether a server error says that a webhook rejected the write or could not be called. In both
// cases the write was not stored, regardless of the status code.
func refusedInAdmission(answer []byte) bool {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(answer, nil, nil)
	if err != nil {
		return false
	}
	status, is := object.(*metav1.Status)
	return is && (strings.HasPrefix(status.Message, `admission webhook "`) ||
		strings.HasPrefix(status.Message, `Internal error occurred: failed calling webhook "`))
}

// applied adds a write that the API server acknowledged. The response contains the claim after the write. For a deletion, it
// contains the claim before, or only a status.
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
		// The write removes the last finalizer, so the claim is deleted. The response contains the previous version.
		o.Devices, o.Gone = nil, true
	}
	r.history.enter(o)
}

// deleted adds a deletion, unless the claim still exists because of finalizers. Even a claim with finalizers may be gone: the
// API server first checks finalizers, and then compares only the UID, so it may miss a new finalizer.
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

// unknown adds a write with unknown outcome. It ignores patches: in these tests, patches only remove users of claims and don't
// change devices.
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

// read reads a body, and replaces it by a copy so that it can be read again.
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

// decode decodes a claim in JSON or in another encoding that client-go uses.
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
