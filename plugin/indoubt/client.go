// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package indoubt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/klog/v2"
)

// Client is the client with which allocations are to be written.
func (w *Writes) Client() kubernetes.Interface { return watchedClient{w.client, w} }

type watchedClient struct {
	kubernetes.Interface
	writes *Writes
}

func (c watchedClient) ResourceV1() typed.ResourceV1Interface {
	return watchedGroup{c.Interface.ResourceV1(), c.writes}
}

type watchedGroup struct {
	typed.ResourceV1Interface
	writes *Writes
}

func (g watchedGroup) ResourceClaims(namespace string) typed.ResourceClaimInterface {
	return watchedClaims{g.ResourceV1Interface.ResourceClaims(namespace), g.writes}
}

type watchedClaims struct {
	typed.ResourceClaimInterface
	writes *Writes
}

// UpdateStatus is where upstream's plugin writes an allocation.
func (c watchedClaims) UpdateStatus(ctx context.Context, sent *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if err := refuseKept(ctx, sent.Name); err != nil {
		return nil, err
	}
	if sent.Status.Allocation == nil {
		return c.ResourceClaimInterface.UpdateStatus(ctx, sent, opts)
	}
	begun, full := c.writes.state(sent.UID)
	if full {
		return nil, fmt.Errorf("it is not known what became of %d earlier allocations of claim %s: it is written again when the API server has answered", maxAttempts, klog.KObj(sent))
	}
	got, err := c.ResourceClaimInterface.UpdateStatus(ctx, sent, opts)
	switch {
	case err == nil:
		c.writes.keepUntilHeard(got)
		// What was sent before was for an earlier version, and is refused from now on.
		c.writes.end(sent.UID, 0, func(a attempt) (Outcome, bool) { return NotStored, a.number <= begun })
	case mayBeStored(err):
		klog.FromContext(ctx).Info("It is not known whether an allocation was stored, its devices are kept until it is", "resourceclaim", klog.KObj(sent), "err", err)
		c.writes.doubt(sent)
	}
	return got, err
}

// ErrNotSent is in the errors of requests that were not sent.
var ErrNotSent = errors.New("nothing is written by a scheduler that may not lead any more")

// mayBeStored tells whether a write may have been carried out, or may yet be, that ended with an error.
func mayBeStored(err error) bool {
	if errors.Is(err, ErrNotSent) {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		if refusedInAdmission(status.Status().Message) {
			return false
		}
		switch code := status.Status().Code; code {
		case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
			// The client repeats by itself what failed with "Retry-After": of the first time nothing is known then.
			return true
		default:
			return code < http.StatusBadRequest || code >= http.StatusInternalServerError
		}
	}
	// Nobody was there to hear it.
	var network *net.OpError
	return !errors.As(err, &network) || network.Op != "dial"
}

// refusedInAdmission tells whether the API server says that a webhook has refused the write, or could not be asked.
// Either is before anything is stored, also where the code is that of a failure: as long as no guard of allocations
// is active all are refused so, and devices must not be kept for them.
func refusedInAdmission(message string) bool {
	return strings.HasPrefix(message, `admission webhook "`) || strings.HasPrefix(message, `Internal error occurred: failed calling webhook "`)
}
