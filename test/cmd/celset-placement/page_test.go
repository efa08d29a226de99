// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package celsetplacement

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement/debug"
	"github.com/celset/celset/test/internal/browser"
)

// TestPage uses the debug page as a user would who asks why a Placement selects its clusters.
func TestPage(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
	axe := browser.AxeIn(browser.EditorPackages(t))
	d, c := startDebugged(t)
	for i, name := range []string{"eu-1", "eu-2", "eu-3", "us-1", "us-2", "strange"} {
		version := fmt.Sprintf("v1.%d.0", 29+i%3)
		joined := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": name[:2]}}}
		require.NoError(t, c.Create(t.Context(), joined))
		joined.Status = clusterv1.ManagedClusterStatus{
			Version:     clusterv1.ManagedClusterVersion{Kubernetes: version},
			Allocatable: clusterv1.ResourceList{"cpu": *resource.NewQuantity(int64(8*(i+1)), resource.DecimalSI), "memory": resource.MustParse("64Gi")},
			Capacity:    clusterv1.ResourceList{"cpu": *resource.NewQuantity(64, resource.DecimalSI), "memory": resource.MustParse("256Gi")},
			Conditions:  []metav1.Condition{},
		}
		require.NoError(t, c.Status().Update(t.Context(), joined))
	}
	object := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "web", Annotations: map[string]string{"celset.dev/placement": "true"}}}
	object.Spec.NumberOfClusters = ptr.To[int32](2)
	object.Spec.Predicates = []clusterv1beta1.ClusterPredicate{
		{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}},
			CelSelector:   clusterv1beta1.ClusterCelSelector{CelExpressions: []string{`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.29.5")) && "<img src=x onerror=alert(1)>" != ""`}},
		}},
		{RequiredClusterSelector: clusterv1beta1.ClusterSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"region": "us"}}}},
	}
	object.Spec.PrioritizerPolicy.Mode = clusterv1beta1.PrioritizerPolicyModeExact
	object.Spec.PrioritizerPolicy.Configurations = []clusterv1beta1.PrioritizerConfig{{Weight: 1, ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: "ResourceAllocatableCPU"}}}
	require.NoError(t, c.Create(t.Context(), object))
	require.Eventually(t, func() bool {
		code, body := d.call(t, http.MethodGet, "/default/web", "reader", "")
		return code == http.StatusOK && strings.Contains(body, `"us-2"`) && strings.Contains(body, "onerror")
	}, 2*time.Minute, 50*time.Millisecond, "the cache does not have it all")
	url := "https://" + d.address + debug.Path + "/"
	open := func(t *testing.T, fragment, who string) *browser.Tab {
		t.Helper()
		page := browser.Open(t, url+fragment)
		page.Fill("#token", d.tokens[who])
		return page
	}

	t.Run("asked", func(t *testing.T) {
		page := open(t, "", "reader")
		page.RequireAccessible(axe, "celset-placement-form")
		page.Fill("#namespace", "default")
		page.Fill("#name", "web")
		page.Click("#ask button")
		page.Read("#verdict", "2 of 8 clusters selected")
		for cluster, want := range map[string][]string{
			"us-2": {"selected", "matches predicate 1"}, "eu-2": {"not selected"},
			"eu-1": {"removed by Predicate", "does not match"}, "strange": {"removed by Predicate"},
		} {
			for _, text := range want {
				page.Read("[data-cluster="+cluster+"]", text)
			}
		}
		page.Click("#try-1")
		require.Equal(t, "2 instead of 2 clusters would be selected.\n\nAdded: eu-3, eu-2\n\nRemoved: us-2, us-1", page.Read("#without-1", "would be selected"))
		page.Click("#try-0")
		require.Equal(t, "The same 2 clusters would be selected.", page.Read("#without-0", "would be selected"))
		page.Shoot("placement-page-dark.png", 1000, "dark")
		page.Shoot("placement-page-narrow.png", 420, "light")
		page.Shoot("placement-page.png", 1000, "light")
		page.RequireAccessible(axe, "celset-placement")
		page.Fill("#search", "eu-1")
		page.Read("#clusters", "eu-1")
		page.Fill("#search", "elsewhere")
		page.Read("#clusters", `No cluster has "elsewhere" in its name, or the cluster is in no cluster set of the Placement: global.`)
		page.Read("main", `<img src=x onerror=alert(1)>`)
		require.Equal(t, url+"#view=placements&namespace=default&name=web", page.Evaluate(`location.href`), "a link has the name, and not the token")
		require.Empty(t, page.Complaints)
		requireRequests(t, page, url, "default/web", "default/web?without=1", "default/web?without=0")
	})
	t.Run("from a link", func(t *testing.T) {
		page := open(t, "#view=placements&namespace=default&name=web", "reader")
		page.Click("#ask button")
		page.Read("#verdict", "2 of 8")
		require.Empty(t, page.Complaints)
	})
	t.Run("at another time", func(t *testing.T) {
		nightly := placementOf("nightly", `now() > timestamp("2030-01-01T00:00:00Z")`)
		require.NoError(t, c.Create(t.Context(), nightly))
		require.Eventually(t, func() bool {
			code, _ := d.call(t, http.MethodGet, "/default/nightly", "reader", "")
			return code == http.StatusOK
		}, 2*time.Minute, 50*time.Millisecond)
		page := open(t, "#view=placements&namespace=default&name=nightly", "reader")
		for _, at := range []struct{ time, where, says string }{
			{"2029-12-31T23:59:59+00:00", "#verdict", "0 of 8"},
			{"2030-01-02T00:00:00Z", "#verdict", "8 of 8"},
			{"tomorrow", "#answer .error", `the parameter now is "tomorrow"; use a time`},
		} {
			page.Fill("#at", at.time)
			page.Click("#ask button")
			page.Read(at.where, at.says)
		}
		require.Empty(t, page.Complaints)
	})
	for who, want := range map[string]string{
		"stranger": `placements.cluster.open-cluster-management.io "web" is forbidden: user "stranger" cannot get resource "placements"`,
		"forged":   "Unauthorized: send the bearer token of a user or a service account of the hub",
	} {
		t.Run("who may not: "+who, func(t *testing.T) {
			page := open(t, "#view=placements&namespace=default&name=web", who)
			page.Click("#ask button")
			page.Read("#answer .error", want)
			requireRequests(t, page, url, "default/web")
		})
	}
	var placements clusterv1beta1.PlacementList
	require.NoError(t, c.List(t.Context(), &placements, client.InNamespace(metav1.NamespaceDefault)))
	for _, stored := range placements.Items {
		require.EqualValues(t, 1, stored.Generation, "nothing was written")
		require.Empty(t, stored.Status.Conditions, "nothing was written")
	}
}

// requireRequests checks the requests for decisions, and that the page sent requests to its own server only.
func requireRequests(t *testing.T, page *browser.Tab, url string, want ...string) {
	t.Helper()
	var decisions []string
	for _, request := range page.Requests {
		path, ok := strings.CutPrefix(request, "GET "+url)
		require.True(t, ok, request)
		if strings.HasPrefix(path, "default/") {
			decisions = append(decisions, path)
		}
	}
	require.Equal(t, want, decisions)
}
