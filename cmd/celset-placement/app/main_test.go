// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
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

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/env"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/placement/controller"
)

// namespace is that in manifests/placement/rbac.yaml.
const namespace = "celset-system"

func TestFlags(t *testing.T) {
	tests := map[string]struct {
		args []string
		err  string
	}{
		"unknown flag":          {[]string{"--nonsense"}, "unknown flag: --nonsense"},
		"argument":              {[]string{"now"}, `unknown command "now"`},
		"no address of metrics": {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--metrics-bind-address="}, "--metrics-bind-address is empty"},
		"no kubeconfig":         {[]string{"--kubeconfig=/does/not/exist"}, "give --kubeconfig, or run in a pod"},
		"no workers":            {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--concurrent-placement-syncs=0"}, "--concurrent-placement-syncs: 0 is not positive"},
		"no time":               {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--evaluation-timeout=0s"}, "--evaluation-timeout 0s must be positive"},
		"too long a turn":       {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--evaluation-turn=6s"}, "at most --evaluation-turn 6s, and that at most --placement-timeout 5s"},
		"no round":              {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--multikueue-round-duration=0s"}, "--multikueue-round-duration: 0s is not positive"},
		"half a second":         {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--now-resolution=1500ms"}, "--now-resolution: 1.5s must be whole seconds, at least 1s"},
		"short lease":           {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--leader-elect-lease-duration=5s"}, "must be longer than --leader-elect-renew-deadline 10s"},
		"no address":            {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--debug-bind-address="}, "--debug-bind-address is empty"},
		"unknown inventory":     {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--inventory=Node"}, `--inventory: "Node" is unknown; give ManagedCluster or ClusterProfile`},
		"no namespace":          {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--inventory=ClusterProfile"}, "--inventory=ClusterProfile needs --inventory-namespace"},
		"needless namespace":    {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--inventory-namespace=fleet"}, "--inventory-namespace=fleet needs --inventory=ClusterProfile"},
		"decisions on nothing":  {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--write-profile-decisions"}, "--write-profile-decisions needs --inventory=ClusterProfile"},
		"eager candidate":       {[]string{"--kubeconfig=testdata/kubeconfig.yaml", "--leader-elect-retry-period=11s"}, "longer than --leader-elect-retry-period 11s"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := newOptions()
			command := newCommand(o)
			// Flags of logging may be applied only once in a process, so what comes after them is
			// run as the command would.
			err := command.ParseFlags(test.args)
			if err == nil {
				err = command.ValidateArgs(command.Flags().Args())
			}
			if err == nil {
				err = o.Run(t.Context(), o.manager)
			}
			require.ErrorContains(t, err, test.err)
		})
	}
}

// TestRun starts the program as it is deployed, but for TLS of the metrics, and with
// all Placements.
func TestRun(t *testing.T) {
	controlPlane, o := startHub(t)
	o.multikueue = true
	require.ErrorContains(t, o.Run(t.Context(), o.manager), "install Kueue 0.15 or later on the hub")
	o.all, o.bindings, o.multikueue = true, true, false
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx, o.manager) }()

	require.Contains(t, get(t, "http://"+o.Health+"/healthz"), "ok")
	require.Contains(t, get(t, "http://"+o.Health+"/readyz"), "ok")
	c := controlPlane
	populate(t, c)
	object := placementOf("any", `managedCluster.metadata.name == "c1"`)
	require.NoError(t, c.Create(ctx, object))
	require.Eventually(t, func() bool {
		return c.Get(ctx, client.ObjectKeyFromObject(object), object) == nil && object.Status.NumberOfSelectedClusters == 1
	}, 2*time.Minute, 50*time.Millisecond, "no cluster is selected")
	require.Contains(t, get(t, "http://"+o.Metrics+"/metrics"),
		fmt.Sprintf(`controller_runtime_reconcile_total{controller=%q,result="success"}`, controller.Name))
	require.Contains(t, get(t, "http://"+o.Metrics+"/metrics"), fmt.Sprintf(`controller_runtime_max_concurrent_reconciles{controller=%q}`, binding.Name))
	requireMeasured(t, get(t, "http://"+o.Metrics+"/metrics"))
	requirePreviewed(t, o, controlPlane.RESTConfig().BearerToken, object)
	lease, err := controlPlane.Client().CoordinationV1().Leases(namespace).Get(ctx, controller.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, *lease.Spec.HolderIdentity)
	stop()
	require.NoError(t, <-done)
	lease, err = controlPlane.Client().CoordinationV1().Leases(namespace).Get(t.Context(), controller.Name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Empty(t, *lease.Spec.HolderIdentity, "the next one needs not wait")
}

// startHub returns a hub and options for a program with the rights in the manifests.
func startHub(t *testing.T, users ...string) (*env.Hub, *options) {
	t.Helper()
	accounts := []controlplane.User{env.Placement}
	for _, user := range users {
		accounts = append(accounts, controlplane.User{Name: user})
	}
	controlPlane := env.StartHub(t, controlplane.Options{Users: accounts})
	controlPlane.ApplyManifests(t, "placement/rbac.yaml")
	var err error
	o := newOptions()
	o.Secure, o.several = false, true
	o.Kubeconfig, err = controlPlane.KubeconfigFor(env.Placement.Name)
	require.NoError(t, err)
	o.Health, o.Metrics, o.debug, o.election.ResourceNamespace = env.FreeAddress(t), env.FreeAddress(t), env.FreeAddress(t), namespace
	return controlPlane, o
}

// populate creates the clusters c1 and c2, which are all in a set that is bound to
// the namespace default.
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

// placementOf returns a Placement in the namespace default with one predicate.
func placementOf(name string, expressions ...string) *clusterv1beta1.Placement {
	result := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	result.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: expressions},
	}}}
	return result
}

// requireMeasured demands that something was observed by every metric that a
// Placement with CEL has, and that no label names an object.
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

// get waits until an address answers, and returns the body.
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

// TestClusterProfiles starts the program on a hub whose clusters are ClusterProfiles, with the
// rights in the manifests.
func TestClusterProfiles(t *testing.T) {
	controlPlane, o := startHub(t)
	controlPlane.InstallProfiles(t)
	o.all, o.inventory, o.inventoryNamespace, o.profileDecisions = true, clusterProfiles, metav1.NamespaceDefault, true
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx, o.manager) }()
	require.Contains(t, get(t, "http://"+o.Health+"/readyz"), "ok")
	c := controlPlane
	populate(t, c)
	profile := &profilev1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "p1"}}
	require.NoError(t, c.Create(ctx, profile))
	object := placementOf("any", `managedCluster.metadata.namespace == "default"`)
	require.NoError(t, c.Create(ctx, object))
	published := &profilev1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "any-decision-1"}}
	require.Eventually(t, func() bool {
		return c.Get(ctx, client.ObjectKeyFromObject(published), published) == nil && len(published.Decisions) == 1
	}, 2*time.Minute, 50*time.Millisecond, "no profile is selected")
	require.Equal(t, "p1", published.Decisions[0].ClusterProfileRef.Name, "ManagedClusters are no clusters here")
	require.Eventually(t, func() bool {
		return c.Get(ctx, client.ObjectKeyFromObject(object), object) == nil && object.Status.NumberOfSelectedClusters == 1
	}, 2*time.Minute, 50*time.Millisecond, "the status does not follow")
	requirePreviewed(t, o, controlPlane.RESTConfig().BearerToken, object)
	stop()
	require.NoError(t, <-done)
}
