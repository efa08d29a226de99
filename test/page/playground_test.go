// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/browser"
	"github.com/celset/celset/test/internal/tool"
)

// TestPlayground uses the playground as a visitor would. The server sends files only, as a static site does.
func TestPlayground(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium, and builds the playground")
	axe := browser.AxeIn(browser.EditorPackages(t))
	output, err := tool.Make("playground")
	require.NoError(t, err, output)
	dist := filepath.Join("..", "..", "dist", "playground")
	server := httptest.NewServer(http.FileServer(http.Dir(dist)))
	t.Cleanup(server.Close)
	raw, err := os.ReadFile(filepath.Join(dist, "examples.json"))
	require.NoError(t, err)
	var examples []struct{ Title string }
	require.NoError(t, json.Unmarshal(raw, &examples))
	require.NotEmpty(t, examples)

	page := browser.Open(t, server.URL)
	page.View(1280, 800, "light")
	page.Read("#answer", "pod default/ring")
	page.Read("#answer .verdict", "✓ Fits")
	page.RequireAccessible(axe, "playground")

	t.Run("all examples", func(t *testing.T) {
		page.T = t
		for _, example := range examples {
			page.Choose("#example", example.Title)
			settled(page)
			page.Read("#answer .verdict", "")
			require.NotContains(t, page.Read("#answer", ""), "bug")
			require.Equal(t, false, page.Evaluate(`[...document.querySelectorAll(".problems .error")].length > 0`), example.Title)
		}
	})
	t.Run("a mistake", func(t *testing.T) {
		page.T = t
		write(page, "# A comment.\n"+strings.Replace(claim, "count: 2", "count: two", 1))
		page.Read(".problems .error", "Line ")
		page.Wait(func() bool {
			return page.Evaluate(`document.querySelector("#editor").shadowRoot.querySelector(".cm-lint-marker-error") !== null`) == true
		}, "a mark in the editor")
		page.Click(".problems .position")
		require.Equal(t, true, page.Evaluate(`document.activeElement.id === "editor"`), "the cursor is in the editor")
		page.RequireAccessible(axe, "playground-mistake")
	})
	t.Run("an edit", func(t *testing.T) {
		page.T = t
		page.Choose("#example", "A rail for each GPU")
		write(page, claim)
		page.Read("#answer .verdict", "✓ Fits")
		write(page, strings.Replace(claim, "count: 2", "count: 30", 1))
		page.Read("#answer .verdict", "✕ Does not fit")
		page.Fill("#nodes", "3")
		settled(page)
		page.Read("#answer .nodes", "3 nodes")
		page.Click(`[data-node="node-2"]`)
		page.Read("#answer figcaption", "node-2")
		page.RequireAccessible(axe, "playground-edit")
	})
	t.Run("completion", func(t *testing.T) {
		page.T = t
		const editor = `document.querySelector("#editor").shadowRoot`
		write(page, "apiVersion: resource.k8s.io/v1\nkind: ")
		page.Type("R")
		page.Wait(func() bool {
			text, _ := page.Evaluate(editor + `.querySelector(".cm-tooltip-autocomplete")?.innerText`).(string)
			return strings.Contains(text, "ResourceClaim")
		}, "completions")
		require.Empty(t, page.Axe(axe))
		page.Press("Escape", keyEscape, 0)
		page.Press("Tab", keyTab, 0)
		require.Equal(t, false, page.Evaluate(`document.activeElement.id === "editor"`), "the Tab key leaves the editor")
	})
	t.Run("devices", func(t *testing.T) {
		page.T = t
		write(page, claim)
		page.Read("#answer .verdict", "✓ Fits")
		page.Click("#answer details.table summary")
		page.Read("#answer details.table table", "default/pair")
		page.RequireAccessible(axe, "playground-devices")
		page.Click("#answer details.table summary")
		page.Choose("#example", "Half of the torus with its EFAs")
		settled(page)
		// docs/pictures/page.png is the upper part, with the 64 most frequent colors.
		page.Shoot("page.png", 1200, "light")
		page.View(1280, 800, "light")
		page.Choose("#example", "A rail for each GPU")
		settled(page)
	})
	t.Run("an error", func(t *testing.T) {
		page.T = t
		write(page, fmt.Sprintf(constrained, "devices.all("))
		require.NotContains(t, page.Read("main", "Syntax error"), "Does not fit")
		write(page, fmt.Sprintf(constrained, "devices[7].driver == ''"))
		page.Read("#answer .verdict", "")
	})
	t.Run("a slow question", func(t *testing.T) {
		page.T = t
		page.Choose("#machine", "AWS trn1.32xlarge: 16 Trainium in a 4x4 torus, and an EFA for each two of them")
		begin(page, slow())
		page.Read(".progress", "Working…")
		page.Click("#cancel")
		page.Read("#answer", "You canceled the question")
		write(page, claim)
		page.Read("#answer .verdict", "")
		begin(page, slow())
		page.Read(".progress", "Working…")
		write(page, claim)
		page.Read("#answer .verdict", "")
		begin(page, slow())
		page.Read("#answer .error", "The answer took longer than 15 s, which is the limit of the playground.")
		page.RequireAccessible(axe, "playground-slow")
		write(page, claim)
		page.Read("#answer .verdict", "")
		page.Choose("#example", "A rail for each GPU")
	})
	t.Run("markup", func(t *testing.T) {
		page.T = t
		write(page, strings.Replace(claim, "deviceClassName: gpu.nvidia.com", "deviceClassName: '"+markup+"'", 1))
		page.Read("main", markup)
		require.Equal(t, false, page.Evaluate(`document.querySelector("main img") !== null`))
	})
	t.Run("a link", func(t *testing.T) {
		page.T = t
		write(page, claim)
		page.Read("#answer .verdict", "✓ Fits")
		page.Click("#share")
		page.Read(".note", "link")
		link, _ := page.Evaluate(`location.href`).(string)
		require.Contains(t, link, "documents=")
		page.Navigate(link)
		page.Read("#answer .verdict", "✓ Fits")
		require.Contains(t, written(page), "name: pair")
		page.Navigate(server.URL + "/#view=try&documents=" + packed(t, []byte(strings.Replace(claim, "pair", "other", 1))))
		page.Read("#answer", "claim default/other")
		for _, documents := range []string{"x", packed(t, make([]byte, 8<<20))} {
			page.Navigate(server.URL + "/#view=try&documents=" + documents)
			page.Read(".note", "damaged")
		}
	})
	page.T = t
	requireSilent(t, page, server.URL)
}

// packed returns documents in the form that links have.
func packed(t *testing.T, documents []byte) string {
	t.Helper()
	var deflated bytes.Buffer
	writer, err := flate.NewWriter(&deflated, flate.BestCompression)
	require.NoError(t, err)
	_, err = writer.Write(documents)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return base64.RawURLEncoding.EncodeToString(deflated.Bytes())
}

// slow returns claims that together take longer than a question may take, on any machine. No square has one of
// the remainders, and the evaluation on each set of devices is expensive.
func slow() string {
	const expression = "devices.exists(a, devices.exists(b, devices.exists(c, devices.exists(d, " +
		"[[a, b, c, d].map(x, x.attributes['neuron.aws.com'].deviceId).sum()].exists(s, s * s %% 97 == %d)))))"
	var documents []string
	for i := range 32 {
		text := fmt.Sprintf(constrained, fmt.Sprintf(expression, nonResidues[i%len(nonResidues)]))
		documents = append(documents, strings.NewReplacer("name: constrained", fmt.Sprintf("name: slow-%d", i), "gpu.nvidia.com", "neuron.aws.com", "count: 4", "count: 8").Replace(text))
	}
	return strings.Join(documents, "---\n")
}

// nonResidues are not remainders of squares divided by 97.
var nonResidues = []int{5, 7, 10, 13, 14, 15, 17, 19, 20, 21, 23, 26, 28, 29, 30, 34}

// constrained is a claim with a constraint. Its verb is the expression.
const constrained = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: constrained
spec:
  devices:
    requests:
    - {name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 4}}
    constraints: [{matchAttribute: celset.dev/c}]
    config:
    - opaque:
        driver: celset.dev
        parameters:
          apiVersion: celset.dev/v1alpha1
          kind: CELDeviceConstraint
          name: c
          expression: %q
`

const claim = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: pair
spec:
  devices:
    requests:
    - {name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}
`
