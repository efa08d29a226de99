// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/celset/celset/internal/controlplane"
	kinds "github.com/celset/celset/internal/hub"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/placement/controller"
)

// serviceAccount is whom manifests/placement/rbac.yaml is about.
const serviceAccount = "system:serviceaccount:celset-system:celset-placement"

// hub is an API server with the kinds and the controllers. The client is that of the
// administrator.
type hub struct {
	client.WithWatch
	config    *rest.Config
	manifests string // directory
	observed  *observed
	stop      func() error
}

var shared *hub

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(runOnHub(m))
}

func runOnHub(m *testing.M) int {
	h, err := startHub()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared = h
	code := m.Run()
	if err := h.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func startHub() (*hub, error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	controlPlane, err := controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr,
		// Whoever names the directory of the binaries has built them.
		Prebuilt:    os.Getenv(controlplane.BinDirEnv) != "",
		SkipKwok:    true,
		Controllers: []string{"garbage-collector-controller"},
		Users:       []controlplane.User{{Name: serviceAccount, Groups: []string{"system:serviceaccounts"}}},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	h := &hub{config: controlPlane.RESTConfig(), manifests: filepath.Join(root, "manifests"), observed: newObserved()}
	h.config.QPS = -1
	managed, err := h.start(ctx, controlPlane)
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

// start creates kinds and rights, and runs the controllers; wait returns when they
// ended.
func (h *hub) start(ctx context.Context, controlPlane *controlplane.ControlPlane) (wait func() error, err error) {
	wait = func() error { return nil }
	if err := kinds.Install(ctx, h.config); err != nil {
		return wait, err
	}
	rbac, err := os.ReadFile(filepath.Join(h.manifests, "placement", "rbac.yaml"))
	if err != nil {
		return wait, err
	}
	if _, err := controlplane.Apply(ctx, h.config, rbac, controlplane.ApplyOptions{}); err != nil {
		return wait, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), controller.AddToScheme(scheme)); err != nil {
		return wait, err
	}
	if h.WithWatch, err = client.NewWithWatch(h.config, client.Options{Scheme: scheme}); err != nil {
		return wait, err
	}
	mgr, err := h.manager(controlPlane, scheme)
	if err != nil {
		return wait, err
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() error { return <-done }, nil
}

// manager has the controllers that celset-placement --bindings has, with the rights
// that it has.
func (h *hub) manager(controlPlane *controlplane.ControlPlane, scheme *runtime.Scheme) (manager.Manager, error) {
	kubeconfig, err := controlPlane.KubeconfigFor(serviceAccount)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: binding.Cache(controller.Cache()), Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return nil, err
	}
	return mgr, errors.Join(binding.Add(mgr), controller.Add(mgr, controller.Options{Scheduler: placement.Config{Observer: h.observed}}))
}

// as returns a client of somebody whom only RBAC gives rights.
func (h *hub) as(t *testing.T, user string) client.Client {
	t.Helper()
	config := rest.CopyConfig(h.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	result, err := client.New(config, client.Options{Scheme: h.Scheme()})
	require.NoError(t, err)
	return result
}

// observed counts what ran by kind and name, and the clusters that predicates were asked about.
type observed struct {
	mutex     sync.Mutex
	runs      map[string]int
	evaluated int
}

func newObserved() *observed { return &observed{runs: map[string]int{}} }

// ObservePlugin implements [placement.Observer].
func (o *observed) ObservePlugin(kind, name string) (end func()) {
	return func() {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.runs[kind+" "+name]++
	}
}

// ObserveSchedule implements [placement.Observer].
func (o *observed) ObserveSchedule() (end func(*placement.Result, error)) {
	return func(result *placement.Result, _ error) {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.evaluated += result.Evaluated
	}
}

func (o *observed) evaluations() int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.evaluated
}

func (o *observed) count(kind, name string) int {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.runs[kind+" "+name]
}
