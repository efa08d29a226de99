// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/celset/celset/internal/controlplane"
	kinds "github.com/celset/celset/internal/hub"
)

// hub is a real API server with the kinds of Open Cluster Management and the
// controller, which the tests that need it share. Each has a namespace and clusters
// of its own.
type hub struct {
	client.WithWatch
	controlPlane *controlplane.ControlPlane
	stop         func() error
}

var started struct {
	sync.Once
	hub *hub
	err error
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code := m.Run()
	if started.hub != nil {
		if err := started.hub.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "something still runs after the manager has ended:", err)
		code = 1
	}
	os.Exit(code)
}

// theHub starts the hub for the first test that asks for it.
func theHub(t *testing.T) *hub {
	t.Helper()
	started.Do(func() { started.hub, started.err = startHub() })
	if started.err != nil {
		t.Fatal(started.err)
	}
	return started.hub
}

func startHub() (*hub, error) {
	ctx, cancel := context.WithCancel(context.Background())
	controlPlane, err := controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr,
		// Whoever names the directory of the binaries has built them.
		Prebuilt:    os.Getenv(controlplane.BinDirEnv) != "",
		SkipKwok:    true,
		Controllers: []string{"garbage-collector-controller", "namespace-controller", "clusterrole-aggregation-controller"},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	config := controlPlane.RESTConfig()
	config.QPS = -1
	Guard(config)
	h := &hub{controlPlane: controlPlane}
	managed, err := h.start(ctx, config)
	h.stop = func() error {
		cancel()
		err := managed()
		controlPlane.Stop()
		return err
	}
	if err != nil {
		return nil, errors.Join(err, h.stop())
	}
	return h, nil
}

// start creates the kinds, the client and the manager; wait returns when that ended.
func (h *hub) start(ctx context.Context, config *rest.Config) (wait func() error, err error) {
	wait = func() error { return nil }
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), AddToScheme(scheme)); err != nil {
		return wait, err
	}
	if err := kinds.Install(ctx, config); err != nil {
		return wait, err
	}
	if h.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return wait, err
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: Cache(), Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
	})
	if err != nil {
		return wait, err
	}
	if err := Add(mgr, Options{}); err != nil {
		return wait, err
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() error { return <-done }, nil
}

// namespace creates one for a test, and deletes it after that.
func (h *hub) namespace(t *testing.T) string {
	t.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, h.Create(t.Context(), object))
	t.Cleanup(func() { must(t, h.Delete(context.Background(), object)) })
	return object.Name
}

// decisions are the PlacementDecisions of a Placement by name.
func (h *hub) decisions(t *testing.T, object *clusterv1beta1.Placement) map[string]clusterv1beta1.PlacementDecision {
	t.Helper()
	list, _, err := decisionsOf(t.Context(), h, client.ObjectKeyFromObject(object))
	must(t, err)
	result := map[string]clusterv1beta1.PlacementDecision{}
	for _, decision := range list {
		result[decision.Name] = *decision
	}
	return result
}

// selected are the clusters in the decisions of a Placement, by the names of the
// PlacementDecisions.
func (h *hub) selected(t *testing.T, object *clusterv1beta1.Placement) map[string][]string {
	t.Helper()
	result := map[string][]string{}
	for name, decision := range h.decisions(t, object) {
		result[name] = []string{}
		for _, d := range decision.Status.Decisions {
			result[name] = append(result[name], d.ClusterName)
		}
	}
	return result
}
