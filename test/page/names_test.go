// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/browser"
)

// reordered has an attribute and a driver whose texts a browser shows in another order than they are written.
const reordered = `apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: a}
spec:
  driver: "x\u202Egnp.exe"
  nodeName: node-1
  pool: {name: node-1, generation: 1, resourceSliceCount: 1}
  devices:
  - name: "gpu\u202E-0"
    attributes: {model: {string: "a\u2066b\u0007"}}
`

// TestReorderedText checks that no text of an object can hide or reorder the text of the page.
func TestReorderedText(t *testing.T) {
	cases.OnlyNightly(t, "needs Chromium")
	file := filepath.Join(t.TempDir(), "slices.yaml")
	require.NoError(t, os.WriteFile(file, []byte(reordered), 0o600))
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	tab := browser.Open(t, strings.Replace(serve(t.Context(), t, "-f", file), "#", "#view=nodes&node=node-1&", 1))
	tab.Read(".details table", `gpu\u202e-0`)
	tab.Read(".details table", `x\u202egnp.exe`)
	tab.Wait(func() bool {
		return tab.Evaluate(`document.querySelector(".details table").textContent.includes(%s)`, `a\u2066b\x07`) == true
	}, "an attribute")
	tab.Read(".listbox", `x\u202egnp.exe`)
	tab.Wait(func() bool { return tab.Evaluate(`document.querySelector(".board svg") !== null`) == true }, "a picture")
	require.Equal(t, false, tab.Evaluate(`/[\u202e\u2066\u0007]/.test(document.body.textContent)`))
}
