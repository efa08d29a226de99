// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"mime"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Guard keeps amounts that ManagedClusters report from harming who reads them. The API
// server takes any text that looks like a quantity. One with twenty digits and an
// exponent of some millions is computed when it is decoded, for hours; one with an
// exponent that is no whole number can't be decoded, and with it none of the list that
// it is in. Whoever reads with this configuration finds -1 in place of what is no
// quantity, or has an exponent of more than two digits.
func Guard(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guard{next} })
}

type guard struct {
	next http.RoundTripper
}

// RoundTrip looks at answers with ManagedClusters.
func (g guard) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := g.next.RoundTrip(request)
	if err != nil || response.Body == nil || !ofClusters(request.URL.Path) || !isJSON(response.Header) {
		return response, err
	}
	response.Body = &filter{body: response.Body}
	// What is replaced is longer.
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

// WrappedRoundTripper lets others look through it.
func (g guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// ofClusters tells whether ManagedClusters are at a path: all, one, or a part of one.
func ofClusters(path string) bool {
	_, resource, found := strings.Cut(path, "/apis/"+clusterv1.GroupName+"/")
	if !found {
		return false
	}
	segments := strings.Split(resource, "/")
	return len(segments) > 1 && segments[1] == "managedclusters"
}

func isJSON(header http.Header) bool {
	media, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	return err == nil && media == "application/json" && header.Get("Content-Encoding") == ""
}
