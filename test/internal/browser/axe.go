// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"os"
	"strings"

	"github.com/stretchr/testify/require"
)

// Axe returns the violations of accessibility rules that axe-core finds in the page, a line for each element. path is the file
// axe.min.js.
func (b *Tab) Axe(path string) []string {
	b.Helper()
	if b.Evaluate(`typeof axe`) != "object" {
		script, err := os.ReadFile(path)
		require.NoError(b, err)
		b.Evaluate(string(script) + "\n;0")
	}
	found, _ := b.Evaluate(`axe.run().then(({violations}) => violations.flatMap((v) => v.nodes.map((n) =>
		v.id + " (" + v.impact + "): " + n.target.join(" ") + ": " + n.failureSummary.replaceAll("\n", " "))).join("\n"))`).(string)
	if found == "" {
		return nil
	}
	return strings.Split(found, "\n")
}
