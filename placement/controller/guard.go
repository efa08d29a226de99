// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"mime"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// Guard keeps one object from harming who reads all of its kind. The API server stores
// more than Go can decode, and what it can't decode takes with it the whole list or
// watch that it is in, so that one cluster, or one user of one namespace, would stop a hub:
//
//   - An amount with twenty digits and an exponent of some millions is computed when it is
//     decoded, for hours, and one with an exponent that is no whole number can't be. Whoever
//     reads with this configuration finds -1 in place of what is no quantity, or has an
//     exponent of more than two digits.
//   - A time such as 2024-01-01T00:00:00+99:99 is a date-time to the API server. In its place
//     is the beginning of 1970: what is valid until then has ended, and so has a toleration
//     of a taint that was added then.
//   - A whole number is stored however large it is. In place of one that has no room is the
//     nearest one that has.
//
// It looks at the kinds of [AddToScheme], and at the places in them whose Go type is one of
// these. The rest of an answer is left as it is.
func Guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guard{next} })
}

type guard struct {
	next http.RoundTripper
}

// RoundTrip looks at answers with objects that the controller reads.
func (g guard) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(request)
	if err != nil || response.Body == nil || !isJSON(response.Header) {
		return response, err
	}
	answer := answers()[resourceAt(request.URL.Path)]
	if answer == nil {
		return response, nil
	}
	response.Body = newFilter(response.Body, answer)
	// What is replaced has another length.
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

// WrappedRoundTripper lets others look through it.
func (g guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// resourceAt is what is at a path: all objects, those of a namespace, one, or a part of one.
func resourceAt(path string) schema.GroupVersionResource {
	_, path, found := strings.Cut(path, "/apis/")
	segments := strings.Split(path, "/")
	if !found || len(segments) < 3 {
		return schema.GroupVersionResource{}
	}
	group, version, rest := segments[0], segments[1], segments[2:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		rest = rest[2:]
	}
	return schema.GroupVersionResource{Group: group, Version: version, Resource: rest[0]}
}

func isJSON(header http.Header) bool {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && media == "application/json" && header.Get("Content-Encoding") == ""
}
