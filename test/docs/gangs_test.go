// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/gangfleet"
)

// TestConstraintsOfGangs checks that the page about gangs shows the constraints of the examples unchanged.
func TestConstraintsOfGangs(t *testing.T) {
	compared := 0
	for _, b := range blocks(t, "yaml") {
		if b.page != "docs/gangs.md" || !strings.HasPrefix(b.text, "name:") {
			continue
		}
		shown := &v1alpha1.CELNodeSetConstraint{}
		require.NoError(t, yaml.UnmarshalStrict([]byte(b.text), shown), b)
		has, err := gangfleet.Constraint(filepath.Join(root, "manifests", "examples", "gangs"), shown.Name)
		require.NoError(t, err, b)
		plain := strings.NewReplacer(" ", "", "\n", "")
		require.Equal(t, plain.Replace(has.Expression), plain.Replace(shown.Expression), b)
		require.Equal(t, has.Preference, shown.Preference, b)
		require.Len(t, shown.Variables, len(has.Variables), b)
		for i, v := range has.Variables {
			require.Equal(t, plain.Replace(v.Expression), plain.Replace(shown.Variables[i].Expression), b)
		}
		compared++
	}
	require.Equal(t, 7, compared)
}
