// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFailedNodesAreNamed: one expression fails on some nodes, and the pod says on which.
func TestFailedNodesAreNamed(t *testing.T) {
	c := constrain(t, claim(2), "row", "devices.all(d, d.attributes['mla.example.com'].row == 1)")
	raw := &c.Spec.Devices.Config[0].Opaque.Parameters.Raw
	*raw = []byte(strings.TrimSuffix(string(*raw), "}") + `, "onError": "NodeDoesNotFit"}`)
	ctx, pl := start(t, true, class(), slice(0, 1), c)
	require.Equal(t, "an expression fails on devices of 1 nodes, such as claim default/claim, constraint row, node node-1, "+
		"devices [mla.example.com/node-1/mla-0, mla.example.com/node-1/mla-1]: the expression fails: line 1, column 47: no such key: row"+
		". consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields",
		strings.Split(fail(ctx, t, pl, "node-0", nodeName).Message(), "; ")[0])
}
