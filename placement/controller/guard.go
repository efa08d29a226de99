// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Guard prevents one object from breaking lists and watches of all objects of its kind. The API server stores values that Go
// can't decode, such as the time 2024-01-01T00:00:00+99:99 or an integer that overflows. A quantity with an exponent of some
// millions takes hours to decode. Such an object makes the whole list or watch fail, so one cluster, or one user of one
// namespace, could stop the controller.
//
// So Guard decodes each object of the kinds of [AddToScheme] alone before the client decodes the list. If an object can't be
// decoded, Guard removes its status. If it still can't be decoded, Guard leaves the object out as if it were deleted. Guard
// logs each such object, and calls observe with its resource, unless observe is nil.
func Guard(config *rest.Config, observe func(resource string)) {
	if observe == nil {
		observe = func(string) {}
	}
	logs := flowcontrol.NewTokenBucketRateLimiter(logsPerSecond, mostLogs)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guard{next, observe, logs} })
}

// An agent may write an undecodable object again and again. The first mostLogs such objects are logged at once, later objects
// at a rate of one a minute.
const (
	mostLogs      = 10
	logsPerSecond = 1. / 60
)

type guard struct {
	next    http.RoundTripper
	observe func(resource string)
	logs    flowcontrol.RateLimiter
}

// WrappedRoundTripper returns the transport that sends the requests.
func (g guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip filters the response if it contains objects of the kinds that the controller reads.
func (g guard) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(request)
	if err != nil || response.Body == nil || !isJSON(response.Header) || response.StatusCode >= http.StatusMultipleChoices {
		return response, err
	}
	resource, isOne := resourceAt(request.URL.Path)
	kind, known := kinds()[resource]
	if !known || request.Method == http.MethodDelete {
		return response, nil
	}
	reader, writer := io.Pipe()
	a := &answering{guard: g, request: request, kind: kind, resource: resource.Resource, from: json.NewDecoder(response.Body), to: writer}
	pass, isWatch := a.list, request.URL.Query().Has("watch")
	switch {
	case isWatch:
		pass = a.events
	case isOne || request.Method != http.MethodGet:
		pass = a.one
	}
	go func() {
		err := pass()
		if errors.Is(err, io.EOF) && !isWatch {
			err = io.ErrUnexpectedEOF
		}
		_ = writer.CloseWithError(err) // always nil for a pipe
	}()
	response.Body = guardedBody{reader, response.Body}
	// The filtered body may be shorter than the original one.
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

// guardedBody is the filtered body of a response.
type guardedBody struct {
	*io.PipeReader
	from io.Closer
}

// Close closes the filtered body and the original one.
func (b guardedBody) Close() error { return errors.Join(b.PipeReader.Close(), b.from.Close()) }

// answering filters the body of one response.
type answering struct {
	guard
	request  *http.Request
	kind     schema.GroupVersionKind
	resource string
	from     *json.Decoder
	to       io.Writer
}

// one passes on a response that is a single object. If the object can't be decoded even without its status, it is passed on
// unchanged, and the caller's decoder returns the error.
func (a *answering) one() error {
	var object json.RawMessage
	if err := a.from.Decode(&object); err != nil {
		return err
	}
	if readable := a.readable(object); readable != nil {
		object = readable
	}
	return a.write(object)
}

// list passes on a response that is a list. It reads and writes one object at a time.
func (a *answering) list() error {
	begin, err := a.from.Token()
	if err != nil {
		return err
	}
	if begin != json.Delim('{') {
		return errors.New("the answer is not a list")
	}
	separator := "{"
	for ; a.from.More(); separator = "," {
		name, err := a.from.Token()
		if err != nil {
			return err
		}
		if err := a.write(fmt.Appendf(nil, "%s%q:", separator, name)); err != nil {
			return err
		}
		if name == "items" {
			err = a.items()
		} else {
			var value json.RawMessage
			if err = a.from.Decode(&value); err == nil {
				err = a.write(value)
			}
		}
		if err != nil {
			return err
		}
	}
	if _, err := a.from.Token(); err != nil {
		return err
	}
	return a.write([]byte(strings.TrimPrefix(separator, ",") + "}"))
}

func (a *answering) items() error {
	begin, err := a.from.Token()
	if err != nil {
		return err
	}
	if begin != json.Delim('[') {
		return a.write([]byte("null"))
	}
	separator := "["
	for a.from.More() {
		var object json.RawMessage
		if err := a.from.Decode(&object); err != nil {
			return err
		}
		if object = a.readable(object); object == nil {
			continue
		}
		if err := a.write(append([]byte(separator), object...)); err != nil {
			return err
		}
		separator = ","
	}
	if _, err := a.from.Token(); err != nil {
		return err
	}
	return a.write([]byte(strings.TrimPrefix(separator, ",") + "]"))
}

// events passes on each event of a watch as it arrives. If the event's object must be left out, the event becomes a deletion.
func (a *answering) events() error {
	for {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := a.from.Decode(&event); err != nil {
			return err
		}
		if event.Type != watch.Error {
			readable := a.readable(event.Object)
			if readable == nil {
				event.Type, readable = watch.Deleted, identityOf(event.Object)
			}
			event.Object = readable
		}
		text, err := json.Marshal(event)
		if err != nil {
			return err
		}
		if err := a.write(append(text, '\n')); err != nil {
			return err
		}
	}
}

func (a *answering) write(text []byte) error {
	_, err := a.to.Write(text)
	return err
}

// readable returns the object if it can be decoded. Otherwise it returns the object without its status, or nil if that can't be
// decoded either.
func (a *answering) readable(object json.RawMessage) json.RawMessage {
	err := a.decode(object)
	if err == nil {
		return object
	}
	a.observe(a.resource)
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil {
		fields = nil
	}
	delete(fields, "status")
	result, failed := json.Marshal(fields)
	if failed != nil || a.decode(result) != nil {
		result = nil
	}
	if a.logs.TryAccept() {
		log.FromContext(a.request.Context()).Info("An object can't be decoded, so it is used without its status, or ignored",
			"resource", a.resource, "object", string(identityOf(object)), "leftOut", result == nil, "err", clip(err.Error()))
	}
	return result
}

// decode decodes a list that contains only this object, and returns the error.
func (a *answering) decode(object []byte) error {
	if err := checkAmounts(object); err != nil {
		return err
	}
	list, err := decodedKinds().New(a.kind.GroupVersion().WithKind(a.kind.Kind + "List"))
	if err != nil {
		return err
	}
	return utiljson.Unmarshal(slices.Concat([]byte(`{"items":[`), object, []byte(`]}`)), list)
}

// maxQuantity is the maximum length of a quantity in bytes.
const maxQuantity = 40

// quantities matches quantities that are decoded quickly. Decoding takes long for a large exponent, not for many digits.
var quantities = regexp.MustCompile(`^[+-]?[0-9.]+([EPTGMk]|[numKMGTPE]i?|[eE][+-]?[0-9]{1,2})?$`)

// checkAmounts returns an error if a quantity in the status of a ManagedCluster may take long to decode.
func checkAmounts(object []byte) error {
	var of struct {
		Status struct {
			Capacity    map[string]json.RawMessage `json:"capacity"`
			Allocatable map[string]json.RawMessage `json:"allocatable"`
		} `json:"status"`
	}
	if err := utiljson.Unmarshal(object, &of); err != nil {
		return err
	}
	for _, amounts := range []map[string]json.RawMessage{of.Status.Capacity, of.Status.Allocatable} {
		for name, amount := range amounts {
			text := bytes.Trim(amount, `"`)
			if string(text) != "null" && (len(text) > maxQuantity || !quantities.Match(text)) {
				return fmt.Errorf("the amount %s of %s is too long, or has a too long exponent", text[:min(len(text), maxQuantity)], name)
			}
		}
	}
	return nil
}

// identityOf returns a copy of the object that has only its type, names, UID, version and labels.
func identityOf(object json.RawMessage) json.RawMessage {
	var of struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Namespace       string            `json:"namespace,omitempty"`
			Name            string            `json:"name"`
			UID             string            `json:"uid,omitempty"`
			ResourceVersion string            `json:"resourceVersion,omitempty"`
			Labels          map[string]string `json:"labels,omitempty"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(object, &of) // fields that can't be decoded stay empty
	text, err := json.Marshal(of)
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

var decodedKinds = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		panic(err) // impossible: the same types encode and decode the object
	}
	return scheme
})

// kinds maps the resources of [AddToScheme] to their kinds.
var kinds = sync.OnceValue(func() map[schema.GroupVersionResource]schema.GroupVersionKind {
	result := map[schema.GroupVersionResource]schema.GroupVersionKind{}
	for kind, of := range decodedKinds().AllKnownTypes() {
		if reflect.PointerTo(of).Implements(reflect.TypeFor[metav1.Object]()) {
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			result[resource] = kind
		}
	}
	return result
})

// resourceAt returns the resource at a URL path. isOne is true if the path names one object or a part of it, not a list.
func resourceAt(path string) (resource schema.GroupVersionResource, isOne bool) {
	_, path, found := strings.Cut(path, "/apis/")
	segments := strings.Split(path, "/")
	if !found || len(segments) < 3 {
		return schema.GroupVersionResource{}, false
	}
	group, version, rest := segments[0], segments[1], segments[2:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		rest = rest[2:]
	}
	return schema.GroupVersionResource{Group: group, Version: version, Resource: rest[0]}, len(rest) > 1
}

func isJSON(header http.Header) bool {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && media == "application/json" && header.Get("Content-Encoding") == ""
}
