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

// Guard keeps one object from harming the readers of all objects of its kind. The API server stores
// more than Go can decode: a time such as 2024-01-01T00:00:00+99:99, a whole number without room, an amount
// with an exponent of some millions, which takes hours. Such an object fails the whole list or watch that it is in,
// so that one cluster, or one user of one namespace, would stop a hub.
//
// So each object of the kinds of [AddToScheme] is decoded alone before the client decodes all of them. One that fails
// is read without its status; if that fails too it is left out, as if it were deleted. Each is passed to observe with its
// resource, if observe is not nil, and named in the log.
func Guard(config *rest.Config, observe func(resource string)) {
	if observe == nil {
		observe = func(string) {}
	}
	logs := flowcontrol.NewTokenBucketRateLimiter(logsPerSecond, mostLogs)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guard{next, observe, logs} })
}

// An agent may write an object again and again. Of the objects that can't be decoded mostLogs are logged at once, and
// then one a minute.
const (
	mostLogs      = 10
	logsPerSecond = 1. / 60
)

type guard struct {
	next    http.RoundTripper
	observe func(resource string)
	logs    flowcontrol.RateLimiter
}

// WrappedRoundTripper lets others look through it.
func (g guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// RoundTrip looks at answers with objects that the controller reads.
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
		_ = writer.CloseWithError(err) // it returns no error
	}()
	response.Body = guardedBody{reader, response.Body}
	// What is left out has another length.
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

// guardedBody ends with the body that it comes from.
type guardedBody struct {
	*io.PipeReader
	from io.Closer
}

// Close ends both.
func (b guardedBody) Close() error { return errors.Join(b.PipeReader.Close(), b.from.Close()) }

// answering passes one answer of the API server on.
type answering struct {
	guard
	request  *http.Request
	kind     schema.GroupVersionKind
	resource string
	from     *json.Decoder
	to       io.Writer
}

// one passes an object. One that can't be decoded is an error of the caller.
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

// list passes a list, one object after the other.
func (a *answering) list() error {
	begin, err := a.from.Token()
	if err != nil {
		return err
	}
	if begin != json.Delim('{') {
		return errors.New("the answer is no list")
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

// events passes the events of a watch as they come. To a watch, what is left out was deleted.
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

// readable returns an object that can be decoded: the object, or that without its status, nil if neither can.
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
		log.FromContext(a.request.Context()).Info("An object can't be decoded: it is read without its status, or left out",
			"resource", a.resource, "object", string(identityOf(object)), "leftOut", result == nil, "err", clip(err.Error()))
	}
	return result
}

// decode returns the error that decoding a list with this object alone has.
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

// maxQuantity is how long the text of an amount may be.
const maxQuantity = 40

// quantities are amounts that are decoded at once: the exponent takes the time, not the number of digits.
var quantities = regexp.MustCompile(`^[+-]?[0-9.]+([EPTGMk]|[numKMGTPE]i?|[eE][+-]?[0-9]{1,2})?$`)

// checkAmounts returns an error if decoding an amount of a ManagedCluster may take long.
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
				return fmt.Errorf("the amount %s of %s is too long, or its exponent is", text[:min(len(text), maxQuantity)], name)
			}
		}
	}
	return nil
}

// identityOf is what is left of an object to say which one it is.
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
	_ = json.Unmarshal(object, &of) // what can be decoded of it
	text, err := json.Marshal(of)
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

var decodedKinds = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		panic(err) // the types of a module contradict each other
	}
	return scheme
})

// kinds are those of [AddToScheme] by their resources.
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

// resourceAt is what is at a path: all objects, those of a namespace, or one, or a part of one.
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
