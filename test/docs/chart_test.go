// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const chart = "manifests/charts/celset"

// TestChart generates the list of the chart's values, with their comments, in the chart's README.
func TestChart(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(chart), "values.yaml"))
	require.NoError(t, err)
	var values yaml.Node
	require.NoError(t, yaml.Unmarshal(content, &values))
	table := "| value | default | |\n|---|---|---|\n" + strings.Join(rowsOf(t, "", values.Content[0]), "\n") + "\n"
	checkGenerated(t, chart+"/README.md", map[string]string{"values": table})
}

// rowsOf returns a table row for each value in a YAML mapping. A mapping with a comment gets a single row.
func rowsOf(t *testing.T, prefix string, mapping *yaml.Node) (rows []string) {
	t.Helper()
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name, comment := prefix+key.Value, textOf(key.HeadComment)
		if value.Kind == yaml.MappingNode && value.Style&yaml.FlowStyle == 0 {
			if comment != "" {
				rows = append(rows, fmt.Sprintf("| **`%s`** | | %s |", name, comment))
			}
			rows = append(rows, rowsOf(t, name+".", value)...)
			continue
		}
		var decoded any
		require.NoError(t, value.Decode(&decoded))
		text, err := json.Marshal(decoded)
		require.NoError(t, err, name)
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |", name, text, comment))
	}
	return rows
}

var pageInComment = regexp.MustCompile(`docs/[\w./-]+\.md(#[\w-]+)?`)

// textOf returns a comment as one line of Markdown, with links to the pages that it names.
func textOf(comment string) string {
	var words []string
	for line := range strings.Lines(comment) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	text := strings.NewReplacer("<", "&lt;", "|", `\|`).Replace(strings.Join(words, " "))
	return pageInComment.ReplaceAllString(text, "[$0](https://github.com/celset/celset/blob/main/$0)")
}
