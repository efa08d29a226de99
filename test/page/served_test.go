// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/browser"
)

// fleet returns 16 hosts in a torus, a group that waits for a block of hosts, and a pod with a message with markup.
func fleet() string {
	var text strings.Builder
	for i := range 16 {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Node\nmetadata: {name: host-%d, labels: {x: %q, \"y\": %q}}\nspec: {unschedulable: %t}\n---\n",
			i, fmt.Sprint(i/4), fmt.Sprint(i%4), i%5 == 4)
	}
	for i := range 4 {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Pod\nmetadata: {name: worker-%d}\nspec: {schedulingGroup: {podGroupName: block}, containers: [{name: main, image: main}]}\n---\n", i)
	}
	for i := range 3 {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: Node\nmetadata: {name: node-%d}\nspec: {unschedulable: true}\n---\n", i+1)
	}
	return text.String() + fmt.Sprintf(`apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata:
  name: block
  annotations:
    celset.dev/node-set-constraint: |
      apiVersion: celset.dev/v1alpha1
      kind: CELNodeSetConstraint
      name: block
      expression: nodes.box(n, [int(n.labels.x), int(n.labels['y'])], [2, 2], [4, 4])
spec:
  schedulingPolicy: {gang: {minCount: 4}}
  schedulingConstraints: {topology: [{key: celset.dev/block}]}
---
apiVersion: v1
kind: Pod
metadata: {name: marked}
spec:
  containers: [{name: main, image: main}]
  resourceClaims: [{name: gone, resourceClaimName: gone}]
status:
  conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: %q}]
`, markup)
}

// TestServed uses the page of "kubectl celset serve" as a user would.
func TestServed(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
	axe := browser.AxeIn(browser.EditorPackages(t))
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	require.NoError(t, os.WriteFile(file, []byte(fleet()), 0o600))
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	address := serve(t.Context(), t, "-f", filepath.Join("..", "cmd", "kubectl-celset", "testdata", "cluster"), "-f", file)
	page := browser.Open(t, address)
	page.View(1280, 800, "light")
	page.Read("main h1", "Nodes")
	require.NotContains(t, page.Evaluate(`location.href`), "token", "the address bar is what users copy")

	t.Run("nodes", func(t *testing.T) {
		page.T = t
		page.Fill(".search input", "node-1")
		page.Evaluate(`document.querySelector(".listbox").focus()`)
		page.Press("Enter", keyEnter, 0)
		page.Read(".details table", "default/train")
		page.Wait(func() bool { return page.Evaluate(`document.querySelector(".board svg rect.box") !== null`) == true }, "a picture")
		page.RequireAccessible(axe, "nodes")
	})
	t.Run("waiting", func(t *testing.T) {
		page.T = t
		page.Click("#view-waiting")
		page.Read("main", markup)
		page.Click(`[data-key="default/claim/grid"]`)
		page.Read(".details .steps .failed", "grid2x2")
		page.Read(".details figcaption", "default/train")
		page.Click(`[data-node="node-1"]`)
		page.Read(".details figcaption", "node-1")
		page.RequireAccessible(axe, "waiting")
	})
	t.Run("gangs", func(t *testing.T) {
		page.T = t
		page.Click("#view-gangs")
		page.Click(`[data-key="default/podgroup/block"]`)
		page.Read(".details .verdict", "Fits")
		page.RequireAccessible(axe, "gangs")
	})
	t.Run("placements", func(t *testing.T) {
		page.T = t
		page.Click("#view-placements")
		page.Read("main", "No Placements")
		page.RequireAccessible(axe, "placements")
	})
	t.Run("try", func(t *testing.T) {
		page.T = t
		page.Click("#view-try")
		page.Read("#answer", "Nothing to try yet")
		page.RequireAccessible(axe, "try-empty")
		claims, err := os.ReadFile(filepath.Join("..", "cmd", "kubectl-celset", "testdata", "cluster", "claims.yaml"))
		require.NoError(t, err)
		write(page, string(claims))
		page.Read("#answer", "claim default/ring")
		page.RequireAccessible(axe, "try")
	})
	t.Run("back", func(t *testing.T) {
		page.T = t
		page.Evaluate(`history.go(-1)`)
		page.Read("main h1", "Placements")
	})
	page.T = t
	requireSilent(t, page, address)
	t.Run("pictures", func(t *testing.T) {
		page.T = t
		shown := func(svg string) any {
			return page.Evaluate(`import("./src/drawing.js").then(({drawing}) => Boolean(drawing({caption: "test", svg: %s})?.querySelector("svg")))`, svg)
		}
		const start = `<svg xmlns="http://www.w3.org/2000/svg">`
		require.Equal(t, true, shown(start+`<rect class="box" width="1" height="1"/></svg>`))
		for _, svg := range []string{
			start + `<script>alert(1)</script></svg>`, start + `<foreignObject/></svg>`, start + `<rect onload="alert(1)"/></svg>`,
			start + `<a href="https://example.com/"/></svg>`, start + `<rect style="fill: red"/></svg>`, start + `<style/></svg>`, start + `<rect></svg>`,
			start + `<rect xmlns="http://www.w3.org/1999/xhtml"/></svg>`, `<svg/>`, markup, "",
		} {
			require.Equal(t, false, shown(svg), svg)
		}
	})
}
