// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package pendingwrites

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// errNotSent is in the errors of requests that were not sent.
var errNotSent = errors.New("nothing is written by a scheduler that may not lead any more")

// errChanged is in conflicts of a request with a version of a claim that is known.
var errChanged = errors.New("the claim was changed in the meantime")

// leaderClient returns a client that writes only while the scheduler leads. A scheduler that was stopped for longer
// than its lease lasts goes on where it was, while another one leads. So each request that writes asks when it is sent: it
// may have waited for long before, for its share of the client. Together with the scheduler's own client this one sends as
// many requests as one.
func leaderClient(config *Config) (kubernetes.Interface, error) {
	if config.KubeConfig == nil {
		return config.Client, nil
	}
	own := rest.AddUserAgent(rest.CopyConfig(config.KubeConfig), "scheduler")
	own.RateLimiter = config.Client.ResourceV1().RESTClient().GetRateLimiter()
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return leaderTransport{next, config.Leads} })
	return kubernetes.NewForConfig(own)
}

type leaderTransport struct {
	next  http.RoundTripper
	leads func() error
}

// RoundTrip implements [http.RoundTripper].
func (t leaderTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if err := t.leads(); err != nil {
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, fmt.Errorf("%w: %w", errNotSent, err)
		}
	}
	return t.next.RoundTrip(request)
}

// Client is the client with which allocations are to be written.
func (w *Writes) Client() kubernetes.Interface { return client{w.config.Client, w} }

type client struct {
	kubernetes.Interface
	writes *Writes
}

func (c client) ResourceV1() typed.ResourceV1Interface {
	return group{c.Interface.ResourceV1(), c.writes}
}

type group struct {
	typed.ResourceV1Interface
	writes *Writes
}

func (g group) ResourceClaims(namespace string) typed.ResourceClaimInterface {
	return claims{g.ResourceV1Interface.ResourceClaims(namespace), g.writes}
}

type claims struct {
	typed.ResourceClaimInterface
	writes *Writes
}

// UpdateStatus is where upstream's plugin writes an allocation.
func (c claims) UpdateStatus(ctx context.Context, sent *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if err := refuseKept(ctx, sent.Name); err != nil {
		return nil, err
	}
	if b := bindingIn(ctx); b != nil {
		return b.updateStatus(ctx, c, sent, opts)
	}
	return c.store(ctx, sent, opts)
}

// store writes a status. An allocation is pending from then on.
func (c claims) store(ctx context.Context, sent *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if sent.Status.Allocation == nil {
		return c.ResourceClaimInterface.UpdateStatus(ctx, sent, opts)
	}
	begun, err := c.writes.room(sent)
	if err != nil {
		return nil, err
	}
	got, err := c.ResourceClaimInterface.UpdateStatus(ctx, sent, opts)
	switch {
	case err == nil:
		c.writes.add(got, true)
		// What was sent before was for an earlier version, and is refused from now on.
		c.writes.end(sent.UID, begun, func(write) Outcome { return NotStored })
	case mayBeStored(err):
		klog.FromContext(ctx).Info("It is not known whether an allocation was stored, its devices are kept until it is", "resourceclaim", klog.KObj(sent), "err", err)
		c.writes.add(sent, false)
	}
	return got, err
}

// mayBeStored reports whether a write that ended with an error may have been carried out, or may yet be.
func mayBeStored(err error) bool {
	if errors.Is(err, errNotSent) {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		// A webhook has refused the write, or could not be called. Either is before anything is stored, also where the
		// code is that of a failure: while no guard of allocations is active all writes are refused so.
		message := status.Status().Message
		if strings.HasPrefix(message, `admission webhook "`) || strings.HasPrefix(message, `Internal error occurred: failed calling webhook "`) {
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
	// A connection that was not made has sent nothing.
	var network *net.OpError
	return !errors.As(err, &network) || network.Op != "dial"
}

// Update is where upstream's plugin adds the finalizer, before it allocates a claim, and removes the finalizer, before it
// deletes a claim.
func (c claims) Update(ctx context.Context, claim *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if err := refuseKept(ctx, claim.Name); err != nil {
		return nil, err
	}
	if b := bindingIn(ctx); b != nil && hasFinalizer(claim) {
		return b.addFinalizer(ctx, c, claim, opts)
	}
	return c.ResourceClaimInterface.Update(ctx, claim, opts)
}

// Patch is where it removes a pod from those that a claim is reserved for.
func (c claims) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*resourceapi.ResourceClaim, error) {
	if err := refuseKept(ctx, name); err != nil {
		return nil, err
	}
	return c.ResourceClaimInterface.Patch(ctx, name, kind, data, opts, subresources...)
}

// Delete is where it takes back a claim that was made for extended resources.
func (c claims) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	if err := refuseKept(ctx, name); err != nil {
		return err
	}
	return c.ResourceClaimInterface.Delete(ctx, name, opts)
}
