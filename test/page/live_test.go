// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/browser"
	"github.com/celset/celset/test/internal/env"
)

func TestMain(m *testing.M) { env.Main(m) }

// TestLive checks that the page follows a cluster, and keeps the choice and the search of the user.
func TestLive(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
	cluster := env.Start(t, controlplane.Options{})
	lab := cluster.NewLab(t, "live", 2)
	driver := lab.Ring(t, 8).Drivers()[0]
	ctx, stop := context.WithCancel(t.Context())
	address := serve(ctx, t, "--kubeconfig", cluster.Kubeconfig())
	page := browser.Open(t, address)
	page.View(1280, 800, "light")
	row := fmt.Sprintf("[data-key=%q]", lab.Nodes[0])
	page.Read(row, "8 of 8 free")
	page.Fill(".search input", lab.Nodes[0])
	page.Click(row)
	page.Read(".details table", "mla-3")

	claim := lab.CreateClaim(t, "taken", env.Request("mla", driver, 1))
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{
		{Request: "mla", Driver: driver, Pool: lab.Nodes[0], Device: "mla-3"},
	}}}
	_, err := cluster.Client().ResourceV1().ResourceClaims(lab.Namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
	page.Read(row, "7 of 8 free, 1 allocated")
	page.Read(".details table", lab.Namespace+"/taken")
	require.Equal(t, lab.Nodes[0], page.Evaluate(`document.querySelector(".search input").value`))
	require.Equal(t, "true", page.Evaluate(`document.querySelector(%s).getAttribute("aria-selected")`, row))
	requireSilent(t, page, address)

	streams := func() (count int) {
		page.Evaluate(`0`) // It receives the events up to now.
		for _, request := range page.Requests {
			if strings.HasSuffix(request, "/events") {
				count++
			}
		}
		return count
	}
	const hide = `Object.defineProperty(document, "hidden", {get: () => %s, configurable: true}); document.dispatchEvent(new Event("visibilitychange"))`
	require.Equal(t, 1, streams())
	page.Evaluate(hide, true)
	require.NoError(t, cluster.Client().ResourceV1().ResourceClaims(lab.Namespace).Delete(t.Context(), claim.Name, metav1.DeleteOptions{}))
	require.Equal(t, 1, streams(), "a hidden page has no stream")
	require.Contains(t, page.Read(row, ""), "7 of 8 free")
	page.Evaluate(hide, false)
	page.Read(row, "8 of 8 free")
	require.Equal(t, 2, streams(), "the page follows changes again")
	require.Equal(t, "", page.Evaluate(`document.querySelector("#connection").textContent`))

	stop()
	page.Read("#connection", "The connection has ended")
	page.Read(row, "8 of 8 free")
	listening, err := url.Parse(address)
	require.NoError(t, err)
	another := serve(t.Context(), t, "--kubeconfig", cluster.Kubeconfig(), "--port", listening.Port())
	page.Read("#connection", "Open the URL that the server printed")
	page.Navigate(another)
	page.Read(row, "8 of 8 free")
	require.Equal(t, "", page.Evaluate(`document.querySelector("#connection").textContent`))
}
