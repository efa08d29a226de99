// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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
)

// TestPage is what a person does who asks why a Placement selects what it selects.
func TestPage(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
	chromium := findChromium(t)
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
	open := func(t *testing.T, fragment, who string) *tab {
		t.Helper()
		page := browse(t, chromium, url+fragment)
		page.fill("#token", d.tokens[who])
		return page
	}

	t.Run("asked", func(t *testing.T) {
		page := open(t, "", "reader")
		page.fill("#namespace", "default")
		page.fill("#name", "web")
		page.click("#ask button")
		page.read("#verdict", "2 of 8 clusters selected")
		for cluster, want := range map[string][]string{
			"us-2": {"selected", "matches predicate 1"}, "eu-2": {"not selected"},
			"eu-1": {"removed by Predicate", "does not match"}, "strange": {"removed by Predicate"},
		} {
			for _, text := range want {
				page.read("[data-cluster="+cluster+"]", text)
			}
		}
		page.click("#try-1")
		require.Equal(t, "2 instead of 2 clusters would be selected.\n\nAdded: eu-3, eu-2\n\nGone: us-2, us-1", page.read("#without-1", "would be selected"))
		page.click("#try-0")
		require.Equal(t, "The same 2 clusters would be selected.", page.read("#without-0", "would be selected"))
		page.shoot("placement-page-dark.png", 1000, "dark")
		page.shoot("placement-page-narrow.png", 420, "light")
		page.shoot("placement-page.png", 1000, "light")
		page.fill("#search", "eu-1")
		page.read("#clusters", "eu-1")
		page.fill("#search", "elsewhere")
		page.read("#clusters", `No cluster to choose from has "elsewhere" in its name: it is in none of the cluster sets global, or does not exist.`)
		page.read("main", `<img src=x onerror=alert(1)>`)
		require.Equal(t, url+"#default/web", page.evaluate(`location.href`), "a link has the name, and not the token")
		require.Empty(t, page.complaints)
		require.Equal(t, []string{
			"GET " + url, "GET " + url + "default/web", "GET " + url + "default/web?without=1", "GET " + url + "default/web?without=0",
		}, page.requests, "it asks this server, and nobody else")
	})
	t.Run("from a link", func(t *testing.T) {
		page := open(t, "#default/web", "reader")
		page.click("#ask button")
		page.read("#verdict", "2 of 8")
		require.Empty(t, page.complaints)
	})
	t.Run("at another time", func(t *testing.T) {
		nightly := placementOf("nightly", `now() > timestamp("2030-01-01T00:00:00Z")`)
		require.NoError(t, c.Create(t.Context(), nightly))
		require.Eventually(t, func() bool {
			code, _ := d.call(t, http.MethodGet, "/default/nightly", "reader", "")
			return code == http.StatusOK
		}, 2*time.Minute, 50*time.Millisecond)
		page := open(t, "#default/nightly", "reader")
		for _, at := range []struct{ time, where, says string }{
			{"2029-12-31T23:59:59+00:00", "#verdict", "0 of 8"},
			{"2030-01-02T00:00:00Z", "#verdict", "8 of 8"},
			{"tomorrow", "#error", `the parameter now is "tomorrow"; give a time`},
		} {
			page.fill("#at", at.time)
			page.click("#ask button")
			page.read(at.where, at.says)
		}
		require.Empty(t, page.complaints)
	})
	for who, want := range map[string]string{
		"stranger": `placements.cluster.open-cluster-management.io "web" is forbidden: user "stranger" cannot get resource "placements"`,
		"forged":   "Unauthorized: give the bearer token of a user or service account of the hub",
	} {
		t.Run("who may not: "+who, func(t *testing.T) {
			page := open(t, "#default/web", who)
			page.click("#ask button")
			page.read("#error", want)
			require.Equal(t, []string{"GET " + url, "GET " + url + "default/web"}, page.requests)
		})
	}
	var placements clusterv1beta1.PlacementList
	require.NoError(t, c.List(t.Context(), &placements, client.InNamespace(metav1.NamespaceDefault)))
	for _, stored := range placements.Items {
		require.EqualValues(t, 1, stored.Generation, "nothing was written")
		require.Empty(t, stored.Status.Conditions, "nothing was written")
	}
}
