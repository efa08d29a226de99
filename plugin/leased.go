// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/celset/celset/plugin/indoubt"
)

// A scheduler that was stopped for longer than its lease lasts goes on where it was, and another one leads
// meanwhile. So each request that allocates or evicts asks whether this one leads when it is sent: it may
// have waited for long before, for its share of the client.

// leasedClient returns a client that writes only while leads returns nil. Together with that of the handle it sends
// as many requests as one. It is that of the handle if this has no configuration, as those of tests.
func leasedClient(handle fwk.Handle, leads func() error) (kubernetes.Interface, error) {
	if handle.KubeConfig() == nil {
		return handle.ClientSet(), nil
	}
	config := rest.AddUserAgent(rest.CopyConfig(handle.KubeConfig()), "scheduler")
	config.RateLimiter = handle.ClientSet().ResourceV1().RESTClient().GetRateLimiter()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return leasedTransport{next, leads} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client that allocates: %w", err)
	}
	return client, nil
}

// leasedHandle is a handle with such a client.
type leasedHandle struct {
	fwk.Handle
	client kubernetes.Interface
}

// ClientSet implements [fwk.Handle].
func (h leasedHandle) ClientSet() kubernetes.Interface { return h.client }

type leasedTransport struct {
	next  http.RoundTripper
	leads func() error
}

// RoundTrip implements [http.RoundTripper].
func (t leasedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if err := t.leads(); err != nil {
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, fmt.Errorf("%w: %w", indoubt.ErrNotSent, err)
		}
	}
	return t.next.RoundTrip(request)
}
