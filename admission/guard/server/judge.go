// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/celset/celset/admission/guard"
)

// readTime is the maximum time for reads while a request is judged. It is less than the API server's timeout for the answer.
const readTime = 3 * time.Second

// inactive is the metrics' label for requests that are refused because this replica does not lead.
const inactive = "inactive"

// judge is the admission handler of a replica.
type judge struct {
	server  *Server
	decoder admission.Decoder
}

// Handle implements admission.Handler.
func (j *judge) Handle(ctx context.Context, request admission.Request) admission.Response {
	if request.Operation != admissionv1.Update || request.SubResource != "status" {
		return admission.Allowed("")
	}
	var claim, former resourceapi.ResourceClaim
	if err := errors.Join(j.decoder.Decode(request, &claim), j.decoder.DecodeRaw(request.OldObject, &former)); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("guard of allocations: %w", err))
	}
	gets := claim.Status.Allocation
	if gets == nil || former.Status.Allocation != nil && equality.Semantic.DeepEqual(gets.Devices.Results, former.Status.Allocation.Devices.Results) {
		return admission.Allowed("")
	}
	began := j.server.options.Now()
	refusal := j.server.judge(ctx, &guard.Write{
		Claim:    guard.Claim{Namespace: request.Namespace, Name: request.Name, UID: former.UID},
		Replaces: former.ResourceVersion, Results: gets.Devices.Results, DryRun: ptr.Deref(request.DryRun, false),
	})
	j.server.options.Metrics.judged(refusal, j.server.options.Now().Sub(began))
	if refusal == nil {
		return admission.Allowed("")
	}
	klog.FromContext(ctx).Info("Refused an allocation", "claim", klog.KRef(request.Namespace, request.Name), "user", request.UserInfo.Username,
		"reason", refusal.Reason, "message", refusal.Message, "inTheWay", refusal.InTheWay)
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: status(refusal)}}
}

// judge asks the Guard about a write while this replica leads. If the lease expired meanwhile, it refuses a write that was
// admitted.
func (s *Server) judge(ctx context.Context, w *guard.Write) *guard.Refusal {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	s.closing.RLock()
	defer s.closing.RUnlock()
	t := s.term.Load()
	if t == nil || s.closed || !t.lease.isValid() {
		return &guard.Refusal{Reason: inactive, Message: "this replica of the allocation guard is not the leader, or still waits until earlier allocations are stored; try again"}
	}
	refusal := t.guard.Judge(ctx, w)
	if refusal == nil && !t.lease.isValid() {
		return &guard.Refusal{Reason: inactive, Message: "the allocation guard lost its lease during the check; try again"}
	}
	return refusal
}

// status returns the response to the author of the write. The response is never a conflict, because schedulers repeat a write
// after a conflict.
func status(refusal *guard.Refusal) *metav1.Status {
	code, reason := int32(http.StatusServiceUnavailable), metav1.StatusReasonServiceUnavailable
	switch refusal.Reason {
	case guard.Overlaps:
		code, reason = http.StatusForbidden, metav1.StatusReasonForbidden
	case guard.Invalid:
		code, reason = http.StatusBadRequest, metav1.StatusReasonBadRequest
	}
	return &metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: refusal.Message}
}
