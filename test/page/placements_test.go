// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/placement/controller"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/browser"
	"github.com/celset/celset/test/internal/env"
)

// fleetOfClusters returns six clusters in two regions, and a Placement that selects two of them.
func fleetOfClusters() string {
	var text strings.Builder
	for i, name := range []string{"eu-1", "eu-2", "eu-3", "us-1", "us-2", "us-3"} {
		fmt.Fprintf(&text, `apiVersion: cluster.open-cluster-management.io/v1
kind: ManagedCluster
metadata: {name: %s, labels: {region: %s, gpus: "%d"}}
spec: {hubAcceptsClient: true}
---
`, name, name[:2], i)
	}
	return text.String() + `apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSet
metadata: {name: global}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {name: global, namespace: default}
spec: {clusterSet: global}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: training, namespace: default, annotations: {celset.dev/placement: "true"}}
spec:
  numberOfClusters: 2
  predicates:
  - requiredClusterSelector:
      labelSelector: {matchLabels: {region: eu}}
      celSelector: {celExpressions: ["int(managedCluster.metadata.labels.gpus) > 0"]}
  - requiredClusterSelector: {labelSelector: {matchLabels: {gpus: "5"}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: mars, namespace: default, annotations: {celset.dev/placement: "true"}}
spec:
  predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {region: mars}}}}]
`
}

// TestPlacements shows decisions of a hub, and which clusters would be selected without a predicate.
func TestPlacements(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
	axe := browser.AxeIn(browser.EditorPackages(t))
	hub := env.StartHub(t, controlplane.Options{})
	hub.Manage(t, hub.ConfigOf(t, controlplane.AdminUser), manager.Options{Cache: controller.Cache()}, func(mgr manager.Manager) error {
		return controller.Add(mgr, controller.Options{SkipNameValidation: true})
	})
	hub.ApplyText(t, fleetOfClusters())
	address := serve(t.Context(), t, "--kubeconfig", hub.Kubeconfig())
	page := browser.Open(t, address)
	page.View(1280, 800, "light")
	page.Click("#view-placements")
	page.Read(`[data-key="default/training"]`, "2 selected")
	page.Read(`[data-key="default/mars"]`, "0 selected")
	page.Click(`[data-key="default/training"]`)
	page.Read("#verdict", "2 of 6 clusters selected")
	page.Read("[data-cluster=us-1]", "removed by Predicate")
	page.Click("#try-1")
	page.Read("#without-1", "would be selected")
	page.Click("#try-0")
	require.Contains(t, page.Read("#without-0", "instead of"), "1 instead of 2 clusters would be selected.")
	page.RequireAccessible(axe, "placement")
	page.Click(`[data-key="default/mars"]`)
	page.Read("#verdict", "0 of 6 clusters selected")
	requireSilent(t, page, address)
}
