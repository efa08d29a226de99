// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/guarded"
)

// guardGrace is the value of --guard-grace: the time that a new active guard waits for writes that an earlier guard has
// admitted. After the API server has asked the guard, only a pause or an outage of the API server or etcd can delay a write,
// and that ends within guardGrace. With the default of a minute, no guard would be active most of the time.
const guardGrace = outage + faultsLease

// guards are two replicas of celset-webhook as guards against double allocations, behind a proxy in place of their Service.
type guards struct {
	replicas []*guardReplica
	// probe is the claim that the test uses to check whether a guard is active. No other program writes it.
	probe *resourceapi.ResourceClaim
}

// A guardReplica is a replica of the guard, which the test restarts whenever it ends.
type guardReplica struct {
	*replica
	life atomic.Pointer[guarded.Replica]
}

// startGuards creates the webhook configuration and starts the replicas. At the end of the test it deletes the configuration.
func startGuards(t *testing.T, seed uint64) *guards {
	t.Helper()
	overlay, err := guarded.Render(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, overlay.Install(t.Context(), cluster.RESTConfig()))
	g := &guards{}
	for i := range 2 {
		g.replicas = append(g.replicas, newGuardReplica(t, overlay, fmt.Sprintf("guard-%d", i), seed+uint64(i)))
	}
	service := serveGuards(t, overlay, g.replicas)
	g.createProbe(t)
	g.register(t, overlay, service)
	env.Eventually(t, "nothing is allocated while there is no guard", func(ctx context.Context) (string, error) {
		if err := g.requireClosed(ctx); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for _, r := range g.replicas {
		require.NoError(t, r.keep(ctx))
		t.Cleanup(func() {
			cancel()
			r.end()
		})
	}
	env.Eventually(t, "a guard judges", func(ctx context.Context) (string, error) {
		if err := g.tryProbe(ctx); err != nil {
			return err.Error(), nil
		}
		return "", nil
	})
	return g
}

func newGuardReplica(t *testing.T, overlay *guarded.Overlay, name string, seed uint64) *guardReplica {
	t.Helper()
	config, err := cluster.RESTConfigFor(env.Webhook.Name)
	require.NoError(t, err)
	r := &guardReplica{}
	r.replica, err = newReplica(name, config, seed)
	require.NoError(t, err)
	path := env.Kubeconfig(t, r.gate.server.URL)
	r.launch = func(ctx context.Context) (*controlplane.Process, error) {
		life, err := overlay.Start(ctx, cluster.ControlPlane, guarded.Options{
			Name: name, Kubeconfig: path, Grace: guardGrace, Lease: faultsLease, Unready: true,
		})
		if err != nil {
			return nil, err
		}
		r.life.Store(life)
		return life.Process, nil
	}
	return r
}

// register creates the webhook configuration with the URL of the service, and with the failure policy of the overlay.
func (g *guards) register(t *testing.T, overlay *guarded.Overlay, service *httptest.Server) {
	t.Helper()
	env.CleanUp(t, func(ctx context.Context) error {
		return client().AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, guarded.Registration, metav1.DeleteOptions{})
	})
	require.NoError(t, overlay.Ask(t.Context(), cluster.RESTConfig(), service.Listener.Addr().String()))
}

func (g *guards) createProbe(t *testing.T) {
	t.Helper()
	g.probe = env.Create(t, client().ResourceV1().ResourceClaims(metav1.NamespaceDefault), guarded.Claim("guard-probe"))
	g.probe.Status.Allocation = guarded.Allocation("probe.example.com")
}

// tryProbe sends a dry run of an allocation of the probe. An active guard admits it.
func (g *guards) tryProbe(ctx context.Context) error {
	_, err := client().ResourceV1().ResourceClaims(g.probe.Namespace).UpdateStatus(ctx, g.probe, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// requireClosed requires that the API server rejects an allocation because no guard is active.
func (g *guards) requireClosed(ctx context.Context) error {
	switch err := g.tryProbe(ctx); {
	case err == nil:
		return errors.New("an allocation was admitted without a guard")
	case !strings.Contains(err.Error(), guarded.Hook):
		return fmt.Errorf("an allocation was not refused because there is no guard: %w", err)
	}
	return nil
}

func (g *guards) programs() []*replica {
	var all []*replica
	for _, r := range g.replicas {
		all = append(all, r.replica)
	}
	return all
}

// active waits until a replica is active, and returns it.
func (g *guards) active(ctx context.Context) (*replica, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, env.Patience, errors.New("no guard is active for too long"))
	defer cancel()
	for ctx.Err() == nil {
		for _, r := range g.replicas {
			if r.answers(ctx, (*guarded.Replica).IsActive) {
				return r.replica, nil
			}
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return nil, context.Cause(ctx)
}

// answers calls question for the replica, with a timeout of probePeriod.
func (r *guardReplica) answers(ctx context.Context, question func(*guarded.Replica, context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, probePeriod)
	defer cancel()
	life := r.life.Load()
	return life != nil && question(life, ctx)
}

// killAll kills all replicas. Afterwards no claim can be allocated until a restarted replica has waited for its grace and is
// active.
func (g *guards) killAll(ctx context.Context) error {
	for _, r := range g.replicas {
		r.kill()
	}
	return g.requireClosed(ctx)
}

// probePeriod is the interval and the timeout of the probes that find active replicas. In a cluster it is longer, so a replica
// that hangs gets requests for longer.
const probePeriod = time.Second

// serveGuards returns a server in place of the overlay's Service. It sends each request to a replica that was active at the
// last probe.
func serveGuards(t *testing.T, overlay *guarded.Overlay, replicas []*guardReplica) *httptest.Server {
	t.Helper()
	certificate, err := overlay.Certificate()
	require.NoError(t, err)
	// The replicas have the same certificate as this server.
	known := x509.NewCertPool()
	known.AddCert(certificate.Leaf)
	s := &guardService{replicas: replicas, transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS13}}}
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme = "https" },
		Transport:    s,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	})
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	ctx, cancel := context.WithCancel(t.Context())
	probing := make(chan struct{})
	go func() {
		defer close(probing)
		for ctx.Err() == nil {
			s.look(ctx)
			sleep(ctx, probePeriod)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-probing
		server.CloseClientConnections()
		server.Close()
		s.transport.CloseIdleConnections()
	})
	return server
}

type guardService struct {
	replicas  []*guardReplica
	transport *http.Transport
	// active holds the addresses of the active replicas. turn counts the requests; the next request goes to the next address.
	active atomic.Pointer[[]string]
	turn   atomic.Uint64
}

// look probes all replicas and updates active.
func (s *guardService) look(ctx context.Context) {
	var active []string
	for _, r := range s.replicas {
		if r.answers(ctx, (*guarded.Replica).IsActive) {
			active = append(active, r.life.Load().Address)
		}
	}
	s.active.Store(&active)
}

// RoundTrip sends a request to the next active replica.
func (s *guardService) RoundTrip(r *http.Request) (*http.Response, error) {
	active := s.active.Load()
	if active == nil || len(*active) == 0 {
		return nil, errors.New("no replica of the guard judges")
	}
	r.URL.Host = (*active)[s.turn.Add(1)%uint64(len(*active))]
	return s.transport.RoundTrip(r)
}
