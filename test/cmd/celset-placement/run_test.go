// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package celsetplacement

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/cmd/celset-placement/app"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
)

// namespace is the namespace of the program in manifests/placement/rbac.yaml.
const namespace = "celset-system"

// TestRun runs the program with --all-placements, as the manifests do. But it serves metrics without TLS.
func TestRun(t *testing.T) {
	hub, p := startHub(t)
	withoutKueue := app.NewCommand()
	withoutKueue.SetArgs(append(p.flags, "--multikueue"))
	require.ErrorContains(t, withoutKueue.ExecuteContext(t.Context()), "install Kueue 0.15 or later on the hub")
	stop := p.start(t, "--all-placements", "--manage-bindings")

	require.Contains(t, get(t, "http://"+p.health+"/healthz"), "ok")
	require.Contains(t, get(t, "http://"+p.health+"/readyz"), "ok")
	populate(t, hub)
	object := placementOf("any", `managedCluster.metadata.name == "c1"`)
	require.NoError(t, hub.Create(t.Context(), object))
	require.Eventually(t, func() bool {
		return hub.Get(t.Context(), client.ObjectKeyFromObject(object), object) == nil && object.Status.NumberOfSelectedClusters == 1
	}, 2*time.Minute, 50*time.Millisecond, "no cluster is selected")
	require.Contains(t, get(t, "http://"+p.metrics+"/metrics"),
		fmt.Sprintf(`controller_runtime_reconcile_total{controller=%q,result="success"}`, controller.Name))
	require.Contains(t, get(t, "http://"+p.metrics+"/metrics"), fmt.Sprintf(`controller_runtime_max_concurrent_reconciles{controller=%q}`, binding.Name))
	requireMeasured(t, get(t, "http://"+p.metrics+"/metrics"))
	requirePreviewed(t, p, hub.RESTConfig().BearerToken, object)
	lease, err := hub.Client().CoordinationV1().Leases(namespace).Get(t.Context(), controller.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, *lease.Spec.HolderIdentity)
	require.NoError(t, stop())
	lease, err = hub.Client().CoordinationV1().Leases(namespace).Get(t.Context(), controller.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, *lease.Spec.HolderIdentity, "the next one needs not wait")
}

// A program is a celset-placement to start, with the RBAC rights in the manifests. health, metrics and debug are the addresses
// in its flags.
type program struct {
	health, metrics, debug string
	flags                  []string
}

// startHub starts a hub, and returns it with a celset-placement that is not started yet.
func startHub(t *testing.T, users ...string) (*env.Hub, *program) {
	t.Helper()
	accounts := []controlplane.User{env.Placement}
	for _, user := range users {
		accounts = append(accounts, controlplane.User{Name: user})
	}
	hub := env.StartHub(t, controlplane.Options{Users: accounts})
	hub.ApplyManifests(t, "placement/rbac.yaml")
	kubeconfig, err := hub.KubeconfigFor(env.Placement.Name)
	require.NoError(t, err)
	p := &program{health: env.FreeAddress(t), metrics: env.FreeAddress(t), debug: env.FreeAddress(t)}
	p.flags = []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect-resource-namespace=" + namespace, "--metrics-secure=false",
		"--health-probe-bind-address=" + p.health, "--metrics-bind-address=" + p.metrics, "--debug-bind-address=" + p.debug,
	}
	return hub, p
}

// start starts the program with its flags and the additional flags. When stop is called, the program must end without an error.
func (p *program) start(t *testing.T, more ...string) (stop func() error) {
	t.Helper()
	return env.StartCommand(t, app.NewCommand(), append(p.flags, more...)...)
}

// populate creates the clusters c1 and c2, a ManagedClusterSet of all clusters, and its binding to the namespace default.
func populate(t *testing.T, c client.Client) {
	t.Helper()
	set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "global"}}
	set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{}}
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "global"}}
	binding.Spec.ClusterSet = "global"
	for _, object := range []client.Object{
		set, binding,
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c2"}},
	} {
		require.NoError(t, c.Create(t.Context(), object))
	}
}

// placementOf returns a Placement in the namespace default that selects clusters by the CEL expressions.
func placementOf(name string, expressions ...string) *clusterv1beta1.Placement {
	result := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	result.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: expressions},
	}}}
	return result
}

// requireMeasured requires that each metric about Placements has a value above zero, and that no label contains the name of an
// object.
func requireMeasured(t *testing.T, page string) {
	t.Helper()
	for _, series := range []string{
		`scheduling_duration_seconds_count{result="decided"}`,
		`plugin_duration_seconds_count{plugin_name="Predicate",plugin_type="filter"}`,
		`plugin_duration_seconds_count{plugin_name="TaintToleration",plugin_type="filter"}`,
		`plugin_duration_seconds_count{plugin_name="Balance",plugin_type="prioritizer"}`,
		`plugin_duration_seconds_count{plugin_name="Steady",plugin_type="prioritizer"}`,
		`writing_duration_seconds_count{result="written"}`,
		`cache_requests_total{cache="matches",result="miss"}`,
		`cel_evaluation_duration_seconds_count`,
		`cel_evaluation_cost_count`,
		`cel_compilations_total{result="compiled"}`,
	} {
		require.Regexp(t, `(?m)^celset_placement_`+regexp.QuoteMeta(series)+` [1-9]`, page)
	}
	require.Regexp(t, `(?m)^celset_placement_cel_evaluation_failures_total{reason="Runtime"} 0$`, page)
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "celset_placement_") {
			require.NotRegexp(t, `"(any|c1|c2|global|default)"`, line)
		}
	}
}

// get waits until the URL answers with status 200, and returns the body.
func get(t *testing.T, url string) (body string) {
	t.Helper()
	require.Eventually(t, func() bool {
		response, err := http.Get(url)
		if err != nil {
			return false
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		body = string(content)
		return err == nil && response.StatusCode == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond, url)
	return body
}

// TestClusterProfiles runs the program on a hub whose clusters are ClusterProfiles.
func TestClusterProfiles(t *testing.T) {
	hub, p := startHub(t)
	hub.InstallProfiles(t)
	p.start(t, "--all-placements", "--inventory=ClusterProfile", "--inventory-namespace="+metav1.NamespaceDefault, "--write-profile-decisions")
	require.Contains(t, get(t, "http://"+p.health+"/readyz"), "ok")
	populate(t, hub)
	profile := &profilev1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "p1"}}
	require.NoError(t, hub.Create(t.Context(), profile))
	object := placementOf("any", `managedCluster.metadata.namespace == "default"`)
	require.NoError(t, hub.Create(t.Context(), object))
	published := &profilev1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "any-decision-1"}}
	require.Eventually(t, func() bool {
		return hub.Get(t.Context(), client.ObjectKeyFromObject(published), published) == nil && len(published.Decisions) == 1
	}, 2*time.Minute, 50*time.Millisecond, "no profile is selected")
	require.Equal(t, "p1", published.Decisions[0].ClusterProfileRef.Name, "ManagedClusters are no clusters here")
	require.Eventually(t, func() bool {
		return hub.Get(t.Context(), client.ObjectKeyFromObject(object), object) == nil && object.Status.NumberOfSelectedClusters == 1
	}, 2*time.Minute, 50*time.Millisecond, "the status does not follow")
	requirePreviewed(t, p, hub.RESTConfig().BearerToken, object)
}
