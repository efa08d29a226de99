// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/placement/debug"
)

const (
	adjacent = "devices.map(d, d.attributes['mla.example.com'].index).max() - devices.map(d, d.attributes['mla.example.com'].index).min() == 1"
	// The second expression is an example in the documentation.
	selects = "quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity('1Gi'))"
)

func isConflict(err error) bool { return apierrors.IsConflict(err) }

// poll calls done at short intervals until it returns true or an error.
func poll(ctx context.Context, done func() (bool, error)) error {
	for {
		ok, err := done()
		if ok || err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.New("not done in time")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// schedule returns a function that creates a pod of the profile and waits until the pod is bound. If constrained is set, the
// pod has a claim for two adjacent devices.
func (l *lab) schedule(name, profile string, constrained bool) func(context.Context, int) error {
	return func(ctx context.Context, n int) (err error) {
		name := fmt.Sprintf("%s-%d", name, n)
		defer func() { err = errors.Join(err, l.remove(context.WithoutCancel(ctx), alice, name)) }()
		claimName := ""
		if constrained {
			claimName = name
			if err := l.alice.Create(ctx, claim(alice, name, 2, adjacent)); err != nil {
				return err
			}
		}
		object := pod(alice, name, profile, claimName)
		if err := l.alice.Create(ctx, object); err != nil {
			return err
		}
		return poll(ctx, func() (bool, error) {
			live := &corev1.Pod{}
			err := l.alice.Get(ctx, client.ObjectKeyFromObject(object), live)
			return live.Spec.NodeName != "", err
		})
	}
}

// place creates a Placement and waits for its decision.
func (l *lab) place(ctx context.Context, n int) (err error) {
	object := placementOf(alice, fmt.Sprintf("placement-%d", n), selects)
	if err := l.alice.Create(ctx, object); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.alice.Delete(context.WithoutCancel(ctx), object)) }()
	return poll(ctx, func() (bool, error) {
		live := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: alice, Name: object.Name + "-decision-1"}}
		err := l.alice.Get(ctx, client.ObjectKeyFromObject(live), live)
		return len(live.Status.Decisions) > 0, err
	})
}

// check makes the API server send a claim to the webhook, by a dry run.
func (l *lab) check(ctx context.Context, n int) error {
	return l.alice.Create(ctx, claim(alice, fmt.Sprintf("checked-%d", n), 2, adjacent), client.DryRunAll)
}

// checkPlacement makes the API server send a Placement to the webhook, by a dry run.
func (l *lab) checkPlacement(ctx context.Context, n int) error {
	return l.alice.Create(ctx, placementOf(alice, fmt.Sprintf("checked-%d", n), selects), client.DryRunAll)
}

// A debugger sends requests to celset-placement's debug address as one user.
type debugger struct {
	client  *http.Client
	address string
	token   string
}

func (l *lab) debugger(address, user string) *debugger {
	// The program's certificate is self-signed.
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 10}
	return &debugger{client: &http.Client{Transport: transport}, address: address, token: l.tokens[user]}
}

// ask sends a Placement to the debug address, which responds with the decision. A mistake in the Placement is no error.
func (d *debugger) ask(ctx context.Context, body []byte) (code int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+d.address+debug.Path+"/", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/yaml")
	request.Header.Set("Authorization", "Bearer "+d.token)
	response, err := d.client.Do(request)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, errors.Join(err, response.Body.Close())
}

// preview sends a harmless Placement to the debug address, and requires a decision.
func (d *debugger) preview(ctx context.Context, n int) error {
	body, err := yaml.Marshal(placementOf(alice, fmt.Sprintf("preview-%d", n), selects))
	if err != nil {
		return err
	}
	for {
		// The server may respond that the client should retry later.
		code, err := d.ask(ctx, body)
		switch {
		case err != nil:
			return err
		case code == http.StatusOK:
			return nil
		case code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable:
			return fmt.Errorf("the debug address answers %d", code)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
