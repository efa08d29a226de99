// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/hub"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/placement/inventory"
)

const (
	serviceAccount = "system:serviceaccount:celset-system:celset-placement"
	// fleet is the namespace of the ClusterProfiles.
	fleet = "fleet"
	// patience is how long a test waits for what must come.
	patience = 2 * time.Minute
)

// shared is the hub of all tests, which run one after another. The client is that of the
// administrator.
var shared struct {
	client.WithWatch
	controlPlane *controlplane.ControlPlane
}

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	code, err := runOnHub(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runOnHub(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Progress: os.Stderr, SkipKwok: true, Controllers: []string{"garbage-collector-controller"},
		// Whoever names the directory of the binaries has built them.
		Prebuilt: os.Getenv(controlplane.BinDirEnv) != "",
		Users:    []controlplane.User{{Name: serviceAccount, Groups: []string{"system:serviceaccounts"}}},
	})
	if err != nil {
		return 1, err
	}
	defer cp.Stop()
	shared.controlPlane = cp
	if err := prepare(ctx, cp); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// prepare installs kinds and rights.
func prepare(ctx context.Context, cp *controlplane.ControlPlane) error {
	config := cp.RESTConfig()
	config.QPS = -1
	if err := hub.Install(ctx, config); err != nil {
		return err
	}
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	definitions, err := filepath.Glob(filepath.Join(root, "manifests", "placement", "profile-crds", "multicluster.*.yaml"))
	if err != nil || len(definitions) == 0 {
		return fmt.Errorf("definitions of ClusterProfiles: %d, %w", len(definitions), err)
	}
	for _, file := range definitions {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := hub.InstallDefinitions(ctx, config, content); err != nil {
			return err
		}
	}
	for _, file := range []string{"rbac.yaml", filepath.Join("profiles", "rbac.yaml")} {
		content, err := os.ReadFile(filepath.Join(root, "manifests", "placement", file))
		if err != nil {
			return err
		}
		if _, err := controlplane.Apply(ctx, config, content, controlplane.ApplyOptions{}); err != nil {
			return err
		}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), controller.AddToScheme(scheme)); err != nil {
		return err
	}
	if shared.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	return shared.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}})
}

// run runs the controller as the program does, and returns what ends it.
func run(t *testing.T) (stop func()) {
	t.Helper()
	kubeconfig, err := shared.controlPlane.KubeconfigFor(serviceAccount)
	require.NoError(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	config.QPS = -1
	controller.Guard(config)
	where := inventory.ClusterProfiles{Namespace: fleet}
	mgr, err := manager.New(config, manager.Options{
		Scheme: shared.Scheme(), Cache: where.Cache(controller.Cache()), Metrics: server.Options{BindAddress: "0"},
	})
	require.NoError(t, err)
	require.NoError(t, controller.Add(mgr, controller.Options{Inventory: where, ProfileDecisions: true, SkipNameValidation: true}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

// team is a namespace to which the set of its name is bound.
type team string

func newTeam(t *testing.T, name string) team {
	t.Helper()
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	create(t, &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}})
	create(t, &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: name},
	})
	return team(name)
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, shared.Create(t.Context(), object))
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(shared.Delete(context.Background(), object)))
	})
}

// join creates the profile of a cluster, in the set of the team.
func (of team) join(t *testing.T, name string, status profilev1alpha1.ClusterProfileStatus) *profilev1alpha1.ClusterProfile {
	t.Helper()
	return of.joinIn(t, fleet, name, status)
}

func (of team) joinIn(t *testing.T, namespace, name string, status profilev1alpha1.ClusterProfileStatus) *profilev1alpha1.ClusterProfile {
	t.Helper()
	object := &profilev1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterv1beta2.ClusterSetLabel: string(of)}},
		Spec:       profilev1alpha1.ClusterProfileSpec{ClusterManager: profilev1alpha1.ClusterManager{Name: "manager"}},
	}
	create(t, object)
	report(t, object, status)
	return object
}

// report sets the status of a profile, as its cluster manager does.
func report(t *testing.T, object *profilev1alpha1.ClusterProfile, status profilev1alpha1.ClusterProfileStatus) {
	t.Helper()
	if status.Conditions == nil {
		status.Conditions = []metav1.Condition{}
	}
	object.Status = status
	require.NoError(t, shared.Status().Update(t.Context(), object))
}

// place creates a Placement for celset.
func (of team) place(t *testing.T, name string, expressions ...string) *clusterv1beta1.Placement {
	t.Helper()
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{
		Namespace: string(of), Name: name, Annotations: map[string]string{placement.TakeAnnotation: "true"},
	}}
	if len(expressions) > 0 {
		object.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: expressions},
		}}}
	}
	create(t, object)
	return object
}

func change[T client.Object](t *testing.T, object T, mutate func(T)) {
	t.Helper()
	before := object.DeepCopyObject().(client.Object)
	mutate(object)
	require.NoError(t, shared.Patch(t.Context(), object, client.MergeFrom(before)))
}

// selected are the clusters of a Placement by the names of its PlacementDecisions.
func (of team) selected(t *testing.T, name string) map[string][]string {
	t.Helper()
	var list clusterv1beta1.PlacementDecisionList
	require.NoError(t, shared.List(t.Context(), &list, client.InNamespace(of), client.MatchingLabels{clusterv1beta1.PlacementLabel: name}))
	result := map[string][]string{}
	for _, object := range list.Items {
		result[object.Name] = []string{}
		for _, decision := range object.Status.Decisions {
			result[object.Name] = append(result[object.Name], decision.ClusterName)
		}
	}
	return result
}

// published are the PlacementDecisions of SIG Multicluster, as a consumer finds them.
func (of team) published(t *testing.T, name string) map[string]profilev1alpha1.PlacementDecision {
	t.Helper()
	var list profilev1alpha1.PlacementDecisionList
	require.NoError(t, shared.List(t.Context(), &list, client.InNamespace(of), client.MatchingLabels{profilev1alpha1.DecisionKeyLabel: name}))
	result := map[string]profilev1alpha1.PlacementDecision{}
	for _, object := range list.Items {
		result[object.Name] = object
	}
	return result
}

// referred are the ClusterProfiles in these.
func (of team) referred(t *testing.T, name string) map[string][]string {
	t.Helper()
	result := map[string][]string{}
	for name, object := range of.published(t, name) {
		result[name] = []string{}
		for _, decision := range object.Decisions {
			require.Equal(t, fleet, decision.ClusterProfileRef.Namespace)
			result[name] = append(result[name], decision.ClusterProfileRef.Name)
		}
	}
	return result
}

// requireSelected waits until both kinds of decisions have these clusters, in one object
// each.
func (of team) requireSelected(t *testing.T, name string, clusters ...string) {
	t.Helper()
	want := map[string][]string{name + "-decision-1": append([]string{}, clusters...)}
	eventually(t, want, func() map[string][]string { return of.selected(t, name) })
	eventually(t, want, func() map[string][]string { return of.referred(t, name) })
}

// eventually waits until two values are equal and shows their difference if they don't
// become it.
func eventually[T any](t *testing.T, want T, get func() T) {
	t.Helper()
	var difference string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if difference = cmp.Diff(want, get()); difference == "" {
			return
		}
	}
	t.Fatalf("(-want +got):\n%s", difference)
}
