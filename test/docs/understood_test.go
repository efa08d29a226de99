// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/celset/celset/cmd/kubectl-celset/check"
	"github.com/celset/celset/internal/clusterstate"
)

// TestSearchReadsEveryConstraint has `kubectl celset check` look at every constraint in the pages
// and manifests: what is to be copied must not be slow.
func TestSearchReadsEveryConstraint(t *testing.T) {
	byPage := map[string]*clusterstate.Objects{}
	for _, b := range append(blocks(t, "yaml"), files(t)...) {
		if _, ok := elsewhereOf(b); ok {
			continue
		}
		page := b.page
		if b.line == 0 {
			page = "manifests" // an example has its class in another file
		}
		if byPage[page] == nil {
			byPage[page] = &clusterstate.Objects{}
		}
		for _, object := range objects(t, b) {
			switch all := byPage[page]; object.GetKind() {
			case "DeviceClass":
				all.Classes = append(all.Classes, typed[resourceapi.DeviceClass](t, object))
			case "ResourceClaimTemplate":
				all.Templates = append(all.Templates, typed[resourceapi.ResourceClaimTemplate](t, object))
			case "ResourceClaim":
				all.Claims = append(all.Claims, typed[resourceapi.ResourceClaim](t, object))
			}
		}
	}
	constraints := 0
	for page, found := range byPage {
		constraints += requireUnderstood(t, page, found)
	}
	t.Logf("%d constraints", constraints)
	require.Greater(t, constraints, 40)
}

// TestSearchReadsMachines looks at the pages about hardware beside the devices that they are
// about: of those it depends whether one evaluation may become too expensive.
func TestSearchReadsMachines(t *testing.T) {
	for page, examples := range hardwarePages(t) {
		p := readHardwarePage(t, page)
		for _, e := range examples {
			found := &clusterstate.Objects{
				Classes: p.classes, Slices: e.slices,
				Templates: []*resourceapi.ResourceClaimTemplate{p.templates[e.template]},
			}
			constraints := requireUnderstood(t, page+" "+e.template, found)
			require.True(t, e.plain || constraints > 0, "%s %s", page, e.template)
		}
	}
}

func requireUnderstood(t *testing.T, where string, found *clusterstate.Objects) (constraints int) {
	t.Helper()
	report, err := check.Run(t.Context(), clusterstate.New(found), func(any) bool { return true },
		check.Options{Features: allFeatures})
	require.NoError(t, err)
	for _, object := range report.Objects {
		require.Empty(t, object.Errors, "%s: %s", where, object.Name)
		for _, c := range object.Constraints {
			constraints++
			require.NotEmpty(t, c.Type, "%s: %s does not compile", where, c.Source)
			require.False(t, c.TooExpensive, "%s: %s", where, c.Source)
			require.NotEmpty(t, c.Conjuncts)
			for _, conjunct := range c.Conjuncts {
				require.Equal(t, check.Understood, conjunct.Understanding, "%s: %s: %s", where, c.Source, conjunct.Text)
			}
		}
		for _, p := range object.Preferences {
			require.True(t, p.Read || p.Policy != "", "%s: %s", where, p.Source)
		}
	}
	return constraints
}
