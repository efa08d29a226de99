// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
	"github.com/celset/celset/internal/testing/tool"
	"github.com/celset/celset/placement/debug"
)

// step is one of bin/browser.
type step struct {
	Open  string `json:"open,omitempty"`
	Fill  string `json:"fill,omitempty"`
	With  string `json:"with,omitempty"`
	Click string `json:"click,omitempty"`
	Read  string `json:"read,omitempty"`
	Text  string `json:"text,omitempty"`
	Shoot string `json:"shoot,omitempty"`
	Width int    `json:"width,omitempty"`
	Dark  bool   `json:"dark,omitempty"`
}

// seen is what bin/browser tells.
type seen struct {
	Texts      map[string]string `json:"texts"`
	Requests   []string          `json:"requests"`
	Complaints []string          `json:"complaints"`
	Location   string            `json:"location"`
}

// findChromium skips the test where there is none, which CI must have.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "" {
		t.Skip("needs Chromium")
	}
	t.Fatal("needs Chromium: apt-get install chromium")
	return ""
}

// browse does the steps in a browser.
func browse(t *testing.T, chromium string, steps ...step) seen {
	t.Helper()
	browser, err := tool.Build("browser")
	require.NoError(t, err)
	input, err := json.Marshal(steps)
	require.NoError(t, err)
	var output, complaints bytes.Buffer
	command := exec.CommandContext(t.Context(), browser, "--program="+chromium)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &output, &complaints
	require.NoError(t, command.Run(), complaints.String())
	var result seen
	require.NoError(t, json.Unmarshal(output.Bytes(), &result))
	return result
}

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
	pictures := t.TempDir()
	if dir := os.Getenv("CELSET_PICTURES"); dir != "" {
		pictures = dir
	}
	url := "https://" + d.address + debug.Path + "/"
	decide := []step{{Fill: "#token", With: d.tokens["reader"]}, {Click: "#ask button"}}

	t.Run("asked", func(t *testing.T) {
		steps := append([]step{{Open: url}, {Fill: "#namespace", With: "default"}, {Fill: "#name", With: "web"}}, decide...)
		steps = append(steps,
			step{Read: "#verdict", Text: "2 of 8 clusters selected"},
			step{Read: "[data-cluster=us-2]"}, step{Read: "[data-cluster=eu-2]"}, step{Read: "[data-cluster=eu-1]"}, step{Read: "[data-cluster=strange]"},
			step{Click: "#try-1"}, step{Read: "#without-1", Text: "would be selected"},
			step{Click: "#try-0"}, step{Read: "#without-0", Text: "would be selected"},
			step{Shoot: filepath.Join(pictures, "placement-page.png")},
			step{Shoot: filepath.Join(pictures, "placement-page-dark.png"), Dark: true},
			step{Shoot: filepath.Join(pictures, "placement-page-narrow.png"), Width: 420},
			step{Fill: "#search", With: "eu-1"}, step{Read: "#clusters", Text: "eu-1"},
			step{Fill: "#search", With: "elsewhere"}, step{Read: ".refused", Text: ""},
			step{Read: "#clusters", Text: `No cluster to choose from has "elsewhere" in its name: it is in none of the cluster sets global, or does not exist.`},
			step{Read: "main", Text: `<img src=x onerror=alert(1)>`},
		)
		saw := browse(t, chromium, steps...)
		require.Contains(t, saw.Texts["[data-cluster=us-2]"], "selected")
		require.Contains(t, saw.Texts["[data-cluster=us-2]"], "matches predicate 1")
		require.Contains(t, saw.Texts["[data-cluster=eu-1]"], "removed by Predicate")
		require.Contains(t, saw.Texts["[data-cluster=eu-1]"], "does not match")
		require.Contains(t, saw.Texts["[data-cluster=eu-2]"], "not selected")
		require.Contains(t, saw.Texts["[data-cluster=strange]"], "removed by Predicate")
		require.Equal(t, "2 instead of 2 clusters would be selected.\n\nAdded: eu-3, eu-2\n\nGone: us-2, us-1", saw.Texts["#without-1"])
		require.Equal(t, "The same 2 clusters would be selected.", saw.Texts["#without-0"])
		require.Empty(t, saw.Complaints)
		require.Equal(t, []string{
			"GET " + url, "GET " + url + "default/web", "GET " + url + "default/web?without=1", "GET " + url + "default/web?without=0",
		}, saw.Requests, "it asks this server, and nobody else")
		require.Equal(t, url+"#default/web", saw.Location, "a link has the name, and not the token")
	})
	t.Run("from a link", func(t *testing.T) {
		saw := browse(t, chromium, append(append([]step{{Open: url + "#default/web"}}, decide...), step{Read: "#verdict", Text: "2 of 8"})...)
		require.Empty(t, saw.Complaints)
	})
	t.Run("at another time", func(t *testing.T) {
		nightly := placementOf("nightly", `now() > timestamp("2030-01-01T00:00:00Z")`)
		require.NoError(t, c.Create(t.Context(), nightly))
		require.Eventually(t, func() bool {
			code, _ := d.call(t, http.MethodGet, "/default/nightly", "reader", "")
			return code == http.StatusOK
		}, 2*time.Minute, 50*time.Millisecond)
		steps := append([]step{{Open: url + "#default/nightly"}, {Fill: "#at", With: "2029-12-31T23:59:59+00:00"}}, decide...)
		steps = append(steps, step{Read: "#verdict", Text: "0 of 8"}, step{Fill: "#at", With: "2030-01-02T00:00:00Z"}, step{Click: "#ask button"}, step{Read: "#verdict", Text: "8 of 8"},
			step{Fill: "#at", With: "tomorrow"}, step{Click: "#ask button"}, step{Read: "#error", Text: `the parameter now is "tomorrow"; give a time`})
		require.Empty(t, browse(t, chromium, steps...).Complaints)
	})
	for who, want := range map[string]string{
		"stranger": `placements.cluster.open-cluster-management.io "web" is forbidden: user "stranger" cannot get resource "placements"`,
		"forged":   "Unauthorized: give the bearer token of a user or service account of the hub",
	} {
		t.Run("who may not: "+who, func(t *testing.T) {
			saw := browse(t, chromium, step{Open: url + "#default/web"}, step{Fill: "#token", With: d.tokens[who]}, step{Click: "#ask button"}, step{Read: "#error", Text: want})
			require.Equal(t, []string{"GET " + url, "GET " + url + "default/web"}, saw.Requests)
		})
	}
	var placements clusterv1beta1.PlacementList
	require.NoError(t, c.List(t.Context(), &placements, client.InNamespace(metav1.NamespaceDefault)))
	for _, stored := range placements.Items {
		require.EqualValues(t, 1, stored.Generation, "nothing was written")
		require.Empty(t, stored.Status.Conditions, "nothing was written")
	}
}
