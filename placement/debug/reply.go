// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// refused is an error whose status is sent to the user. All other errors are internal, including errors of the API server,
// because the user can't correct them.
type refused struct {
	status metav1.Status
}

// Error returns the message.
func (r *refused) Error() string { return r.status.Message }

func refusalOf(from *apierrors.StatusError) error { return &refused{from.ErrStatus} }

func refusal(code int, reason metav1.StatusReason, message string) error {
	return &refused{metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message}}
}

func noSuchPath(request *http.Request) error {
	return refusal(http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("the path %s does not exist; use GET %s/<namespace>/<name>, or POST a Placement to %s/", request.URL.Path, Path, Path))
}

// allow returns an error unless the request has the given method.
func allow(w http.ResponseWriter, request *http.Request, method string) error {
	if request.Method == method {
		return nil
	}
	w.Header().Set("Allow", method)
	return refusal(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		fmt.Sprintf("the method %s is not allowed on %s; use %s", request.Method, request.URL.Path, method))
}

// refuse sends a Status for an error. An internal error is logged, and its text is not sent to the user.
func refuse(ctx context.Context, w http.ResponseWriter, err error) {
	var known *refused
	if !errors.As(err, &known) {
		klog.FromContext(ctx).Error(err, "Debugging a Placement failed")
		known = &refused{apierrors.NewInternalError(errors.New("internal error; the reason is in the log of the server")).ErrStatus}
	}
	status := known.status
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	reply(ctx, w, int(status.Code), status)
}

func reply(ctx context.Context, w http.ResponseWriter, code int, body any) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	// Expressions often contain && and <, which must stay readable.
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		klog.FromContext(ctx).V(4).Info("Could not send an answer", "err", err)
	}
}
