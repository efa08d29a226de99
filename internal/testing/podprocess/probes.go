// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package podprocess

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	probehttp "k8s.io/kubernetes/pkg/probe/http"
)

const (
	// hurry is how much oftener probes are called than a pod says.
	hurry = 10
	// slack is how much longer a probe may take, and fail, than a pod says: a machine that runs tests
	// may have much else to do.
	slack = 10
)

// prober calls one probe of a container again and again.
type prober struct {
	probe *corev1.Probe
	// next is when it is called again, and failing since when it fails.
	next, failing time.Time
	passed        bool
	err           error
}

func newProber(probe *corev1.Probe, now time.Time) *prober {
	if probe == nil {
		return nil
	}
	return &prober{probe: probe, next: now.Add(time.Duration(probe.InitialDelaySeconds) * time.Second)}
}

func (r *prober) period() time.Duration { return time.Duration(r.probe.PeriodSeconds) * time.Second }

// call probes if it is time.
func (r *prober) call(ctx context.Context, p *pod) {
	now := time.Now()
	if r == nil || now.Before(r.next) {
		return
	}
	r.err = p.call(ctx, r.probe)
	r.next = now.Add(r.period() / hurry)
	switch {
	case r.err == nil:
		r.passed, r.failing = true, time.Time{}
	case r.failing.IsZero():
		r.failing = now
	}
}

// failed tells that the probe has failed for as long as it may.
func (r *prober) failed() bool {
	return r != nil && !r.failing.IsZero() && time.Since(r.failing) >= slack*time.Duration(r.probe.FailureThreshold)*r.period()
}

// succeeds tells that the probe, if there is one, passed and has not failed since for as long as it
// may.
func (r *prober) succeeds() bool { return r == nil || r.passed && !r.failed() }

// call asks the container what the kubelet would.
func (p *pod) call(ctx context.Context, probe *corev1.Probe) error {
	if probe.HTTPGet == nil {
		return errors.New("only probes by HTTP are known")
	}
	container, err := p.container()
	if err != nil {
		return err
	}
	request, err := probehttp.NewRequestForHTTPGetAction(probe.HTTPGet, container, p.address, "probe")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, slack*time.Duration(probe.TimeoutSeconds)*time.Second)
	defer cancel()
	status, body, err := p.do(request.WithContext(ctx))
	if err != nil {
		return err
	}
	if status < http.StatusOK || status >= http.StatusBadRequest {
		return fmt.Errorf("GET %s: %d: %s", request.URL, status, body)
	}
	return nil
}

// do sends a request into the network of the pod. Nobody checks the certificates of pods.
func (p *pod) do(request *http.Request) (status int, body []byte, err error) {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext:       func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address) },
	}}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
