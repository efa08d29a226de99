// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const architecture = "../../docs/architecture.md"

// treeLine matches a line that describes a package in a tree of docs/architecture.md.
var treeLine = regexp.MustCompile(`^( *)([a-z][a-z0-9/-]*)(  +\S.*)?$`)

// TestArchitectureNamesPackages checks that docs/architecture.md names all packages, and no others. If a package is indented,
// the package above must import it.
func TestArchitectureNamesPackages(t *testing.T) {
	packages, err := list()
	require.NoError(t, err)
	content, err := os.ReadFile(architecture)
	require.NoError(t, err)
	page := string(content)
	overview, _, found := strings.Cut(page, "\n## How a claim is allocated\n")
	require.True(t, found)

	for path := range packages {
		folder, ours := strings.CutPrefix(path, module+"/")
		if !ours || under(folder, "test") || under(folder, "internal/testing") {
			continue
		}
		named := regexp.MustCompile("(?m)(^ *|`)" + regexp.QuoteMeta(folder) + "(`|  +|$)")
		assert.True(t, named.MatchString(overview), "%s does not say what %s is", architecture, folder)
	}

	var above []string // the packages above the current line, by depth
	inTree := false
	for line := range strings.SplitSeq(overview, "\n") {
		if strings.HasPrefix(line, "```") {
			inTree, above = !inTree, nil
			continue
		}
		if !inTree {
			continue
		}
		parts := treeLine.FindStringSubmatch(line)
		require.NotNil(t, parts, "this is no line with a package: %q", line)
		depth, path := len(parts[1])/2, module+"/"+parts[2]
		_, exists := packages[path]
		assert.True(t, exists, "%s names %s, which there is not", architecture, path)
		require.LessOrEqual(t, depth, len(above), "%s is indented too far", parts[2])
		above = append(above[:depth], path)
		if depth > 0 {
			assert.True(t, slices.Contains(packages[above[depth-1]].Deps, path), "%s is indented below %s, which does not import it", path, above[depth-1])
		}
	}
}
