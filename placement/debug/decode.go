// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/celset/celset/cel/fairness"
	"github.com/celset/celset/placement/report"
)

const (
	// maxBody is the maximum size of a request's body in bytes. A Placement with the longest possible expression fits. Decoding
	// YAML takes a hundred times its size in memory.
	maxBody = 128 << 10
	// smallBody is the maximum size in bytes of a body that is decoded without waiting. Larger bodies are decoded one at a time,
	// and users take turns. Namespaces can't take turns, because the body is not decoded yet.
	smallBody = 1 << 10
)

var decodingTurns = fairness.NewTurns(1, maxWaiting)

// codecs are strict: they reject unknown fields. If a misspelled field were ignored, the answer would be wrong.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(clusterv1beta1.Install(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}()

// decode decodes the Placement in a request's body. It sets defaults, and removes the status and the managed fields.
func decode(w http.ResponseWriter, request *http.Request, user string) (*clusterv1beta1.Placement, error) {
	decoder, err := decoderOf(request.Header)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, request.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, refusalOf(apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("the limit is %d bytes", maxBody)))
	}
	if err != nil {
		return nil, refusalOf(apierrors.NewBadRequest("the body could not be read: " + err.Error()))
	}
	if len(body) > smallBody {
		end, err := decodingTurns.Take(request.Context(), user)
		switch {
		case errors.Is(err, fairness.ErrTooMany):
			return nil, refusalOf(apierrors.NewTooManyRequests(fmt.Sprintf("%d Placements from you are waiting to be read; try again later", maxWaiting), 1))
		case err != nil:
			return nil, refusalOf(apierrors.NewTimeoutError("the server is busy with other requests; try again later", 1))
		}
		defer end()
	}
	decoded, kind, err := decoder.Decode(body, nil, &clusterv1beta1.Placement{})
	if err != nil {
		return nil, refusalOf(apierrors.NewBadRequest("the body is not a Placement: " + report.Clip(err.Error(), report.MaxMessage)))
	}
	object, ok := decoded.(*clusterv1beta1.Placement)
	if !ok {
		return nil, refusalOf(apierrors.NewBadRequest(fmt.Sprintf("the body is a %s; send a Placement of %s", kind, clusterv1beta1.GroupVersion)))
	}
	report.SetDefaults(object, body)
	object.Status, object.ManagedFields = clusterv1beta1.PlacementStatus{}, nil
	return object, named(object)
}

func decoderOf(header http.Header) (runtime.Decoder, error) {
	if encoding := header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		return nil, refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Sprintf("the encoding %q of the body is not supported; send the body without an encoding", encoding))
	}
	given := header.Get("Content-Type")
	media := runtime.ContentTypeJSON
	if given != "" {
		media, _, _ = mime.ParseMediaType(given)
	}
	if media == runtime.ContentTypeJSON || media == runtime.ContentTypeYAML {
		if info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media); ok {
			return info.StrictSerializer, nil
		}
	}
	return nil, refusal(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
		fmt.Sprintf("the body is of type %q; send a Placement as %s or %s", given, runtime.ContentTypeJSON, runtime.ContentTypeYAML))
}

// named returns an error unless the object has a valid namespace and name. They decide which right the user needs, and which
// former decisions belong to the object.
func named(object *clusterv1beta1.Placement) error {
	if wrong := validation.IsDNS1123Label(object.Namespace); len(wrong) > 0 {
		return refusalOf(apierrors.NewBadRequest(fmt.Sprintf("metadata.namespace: %q: %s", report.Clip(object.Namespace, report.MaxReason), strings.Join(wrong, ", "))))
	}
	if wrong := validation.IsDNS1123Subdomain(object.Name); len(wrong) > 0 {
		return refusalOf(apierrors.NewBadRequest(fmt.Sprintf("metadata.name: %q: %s", report.Clip(object.Name, report.MaxReason), strings.Join(wrong, ", "))))
	}
	return nil
}
