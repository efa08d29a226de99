// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
)

// A Hub is an API server with the kinds of Open Cluster Management. Its embedded client has the administrator's rights.
type Hub struct {
	*Env
	client.WithWatch
}

// StartHub starts a hub without kwok. It starts the controller manager only if options.Controllers is set.
func StartHub(t testing.TB, options controlplane.Options, programs ...string) *Hub {
	t.Helper()
	log.SetLogger(logr.Discard())
	options.SkipKwok, options.SkipControllerManager = true, len(options.Controllers) == 0
	h := &Hub{Env: Start(t, options, programs...)}
	require.NoError(t, hub.Install(t.Context(), h.RESTConfig()))
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1alpha1.Install, clusterv1beta1.Install, clusterv1beta2.Install,
		profilev1alpha1.AddToScheme,
	} {
		require.NoError(t, add(scheme))
	}
	var err error
	h.WithWatch, err = client.NewWithWatch(unlimited(h.RESTConfig()), client.Options{Scheme: scheme})
	require.NoError(t, err)
	return h
}

// unlimited turns off the client-side rate limit.
func unlimited(config *rest.Config) *rest.Config {
	config.QPS = -1
	return config
}

// InstallProfiles installs the kinds of SIG Multicluster, and RBAC rights to them.
func (h *Hub) InstallProfiles(t testing.TB) {
	t.Helper()
	for _, definitions := range read(t, []string{"placement/profile-crds/multicluster.*.yaml"}) {
		require.NoError(t, hub.InstallDefinitions(t.Context(), h.RESTConfig(), []byte(definitions)))
	}
	h.ApplyManifests(t, "placement/profiles/rbac.yaml")
}

// InstallKueue installs the kinds of MultiKueue in the version that hack/tools/kueue requires, and RBAC rights to them.
func (h *Hub) InstallKueue(t testing.TB) {
	t.Helper()
	root, err := controlplane.ModuleRoot()
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "sigs.k8s.io/kueue")
	command.Dir = filepath.Join(root, "hack/tools/kueue")
	output, err := command.Output()
	require.NoError(t, err, "%s", output)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(output, &module))
	for _, kind := range []string{"workloads", "admissionchecks", "multikueueconfigs"} {
		definition, err := os.ReadFile(filepath.Join(module.Dir, "config/components/crd/bases", "kueue.x-k8s.io_"+kind+".yaml"))
		require.NoError(t, err)
		require.NoError(t, hub.InstallDefinitions(t.Context(), h.RESTConfig(), definition))
	}
	h.ApplyManifests(t, "placement/multikueue/rbac.yaml")
}

// ConfigOf returns a client configuration without a rate limit for a user: the administrator, a user of the control plane, or
// any other name. Another name is impersonated, and has only rights from RBAC.
func (h *Hub) ConfigOf(t testing.TB, user string) *rest.Config {
	t.Helper()
	if user == controlplane.AdminUser {
		return unlimited(h.RESTConfig())
	}
	kubeconfig, err := h.KubeconfigFor(user)
	if err != nil {
		config := unlimited(h.RESTConfig())
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		return config
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	return unlimited(config)
}

// As returns a client with the rights of a user.
func (h *Hub) As(t testing.TB, user string) client.Client {
	t.Helper()
	result, err := client.New(h.ConfigOf(t, user), client.Options{Scheme: h.Scheme()})
	require.NoError(t, err)
	return result
}

// Manage runs a manager with the controllers that add adds, until stop is called or the test ends.
func (h *Hub) Manage(t testing.TB, config *rest.Config, options manager.Options, add ...func(manager.Manager) error) (stop func()) {
	t.Helper()
	options.Scheme, options.Metrics, options.Logger = h.Scheme(), server.Options{BindAddress: "0"}, logr.Discard()
	mgr, err := manager.New(config, options)
	require.NoError(t, err)
	var errs []error
	for _, f := range add {
		errs = append(errs, f(mgr))
	}
	require.NoError(t, errors.Join(errs...))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// CreateFor creates an object and deletes it after the test.
func (h *Hub) CreateFor(t testing.TB, object client.Object) {
	t.Helper()
	require.NoError(t, h.Create(t.Context(), object))
	CleanUp(t, func(ctx context.Context) error { return h.Delete(ctx, object) })
}

// Change applies mutate to a copy of the object, and patches the object with the difference.
func Change[T client.Object](ctx context.Context, in client.Client, object T, mutate func(T)) error {
	before := object.DeepCopyObject().(client.Object)
	mutate(object)
	return in.Patch(ctx, object, client.MergeFrom(before))
}
