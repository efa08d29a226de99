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

// errNotSent is the cause of an error if a request was not sent.
var errNotSent = errors.New("the scheduler wrote nothing, because it may no longer be the leader: the leader tries again")

// errChanged is the cause of a conflict if the scheduler already has a newer version of the claim than the request.
var errChanged = errors.New("the claim was changed in the meantime")

// leaderClient returns a client that writes only while this scheduler is the leader. A scheduler that was paused for longer
// than its lease continues while another one leads. So each write checks the lease when it is sent, because it may have waited
// long for the rate limiter. The client shares the rate limiter with the scheduler's own client.
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

// Client returns the client that upstream's plugin must use to write allocations.
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

// UpdateStatus writes the allocations and reservations that upstream's plugin stores in claims.
func (c claims) UpdateStatus(ctx context.Context, sent *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if err := refuseProtected(ctx, sent.Name); err != nil {
		return nil, err
	}
	if b := bindingIn(ctx); b != nil {
		return b.updateStatus(ctx, c, sent, opts)
	}
	return c.store(ctx, sent, opts)
}

// store writes the status of a claim. If the status has an allocation, the write is pending afterwards, unless an error proves
// that the API server did not store it.
func (c claims) store(ctx context.Context, sent *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if sent.Status.Allocation == nil {
		return c.ResourceClaimInterface.UpdateStatus(ctx, sent, opts)
	}
	number, err := c.writes.checkLimit(sent)
	if err != nil {
		return nil, err
	}
	got, err := c.ResourceClaimInterface.UpdateStatus(ctx, sent, opts)
	switch {
	case err == nil:
		c.writes.add(got, true)
		// Earlier writes were sent for an older version of the claim, so the API server rejects them now.
		c.writes.end(sent.UID, number, func(write) Outcome { return NotStored })
	case mayBeStored(err):
		klog.FromContext(ctx).Info("It is unknown whether an allocation was stored; its devices stay reserved until that is known", "resourceclaim", klog.KObj(sent), "err", err)
		c.writes.add(sent, false)
	}
	return got, err
}

// mayBeStored reports whether the API server may have stored a failed write, or may still store it.
func mayBeStored(err error) bool {
	if errors.Is(err, errNotSent) {
		return false
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		// A webhook rejected the write or could not be called. The API server calls webhooks before it stores the write, so nothing
		// was stored, even if the code is an internal error. While no double-allocation guard is active, all writes fail like this.
		message := status.Status().Message
		if strings.HasPrefix(message, `admission webhook "`) || strings.HasPrefix(message, `Internal error occurred: failed calling webhook "`) {
			return false
		}
		switch code := status.Status().Code; code {
		case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
			// The client repeats a request by itself after "Retry-After". This error is about the repetition, and the result of the
			// first request is unknown.
			return true
		default:
			return code < http.StatusBadRequest || code >= http.StatusInternalServerError
		}
	}
	// If dialing failed, there was no connection, so nothing was sent.
	var network *net.OpError
	return !errors.As(err, &network) || network.Op != "dial"
}

// Update writes the finalizer of a claim for upstream's plugin, which adds the finalizer before an allocation and removes it
// before the deletion of a claim.
func (c claims) Update(ctx context.Context, claim *resourceapi.ResourceClaim, opts metav1.UpdateOptions) (*resourceapi.ResourceClaim, error) {
	if err := refuseProtected(ctx, claim.Name); err != nil {
		return nil, err
	}
	if b := bindingIn(ctx); b != nil && hasFinalizer(claim) {
		return b.addFinalizer(ctx, c, claim, opts)
	}
	return c.ResourceClaimInterface.Update(ctx, claim, opts)
}

// Patch removes a pod from the reservations of a claim for upstream's plugin.
func (c claims) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*resourceapi.ResourceClaim, error) {
	if err := refuseProtected(ctx, name); err != nil {
		return nil, err
	}
	return c.ResourceClaimInterface.Patch(ctx, name, kind, data, opts, subresources...)
}

// Delete deletes a claim that upstream's plugin made for extended resources.
func (c claims) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	if err := refuseProtected(ctx, name); err != nil {
		return err
	}
	return c.ResourceClaimInterface.Delete(ctx, name, opts)
}
