// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/internal/testing/corpus"
)

// TestOrderDependenceOfTheCorpus names the real expressions that speak of places.
func TestOrderDependenceOfTheCorpus(t *testing.T) {
	environment, err := NewEnvironment(cel.Config{})
	require.NoError(t, err)
	var found []string
	for _, e := range corpus.Expressions() {
		compiled, err := environment.Compile(t.Context(), e.Text)
		require.NoError(t, err)
		if _, ok := compiled.OrderDependence(); ok {
			found = append(found, e.Name)
		}
	}
	require.Equal(t, []string{
		"ring: sorted and without gaps", "ring: by place",
		"coupled: the same roots in order", "coupled: by place", "pod: a plane",
		"pod: one generation", "host: bandwidth as a quantity", "host: one MTU", "host: a common rail",
		"host: no rail twice", "sockets: the last is on another socket",
		"sockets: two requests on different sockets",
	}, found)
}
