// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/celset/celset/test/internal/render"
)

// manifestSchema is the schema of whole manifests.
const manifestSchema = "schemas/celset.schema.json"

func compileSchema(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(root, file))
	require.NoError(t, err)
	return schema
}

// TestSchemasTakeObjects validates each object in the pages and in manifests as an editor does.
func TestSchemasTakeObjects(t *testing.T) {
	schema := compileSchema(t, manifestSchema)
	checked := 0
	for _, b := range append(blocks(t, "yaml"), files(t)...) {
		if isTemplate(b) {
			continue
		}
		parsed, err := render.Decode([]byte(b.text))
		if err != nil {
			continue
		}
		for _, object := range parsed {
			if object.GetKind() == "" {
				continue
			}
			checked++
			require.NoError(t, schema.Validate(object.Object), b)
		}
	}
	require.Greater(t, checked, 150)
}

// isTemplate reports whether a file is one of the templates of the chart.
func isTemplate(b block) bool { return strings.Contains(b.page, "/templates/") }

// modeline is the first line of a file for editors with yaml-language-server. The path of the schema follows.
const modeline = "# yaml-language-server: $schema="

// TestExamplesNameTheirSchema checks the first line of each example. Its path is relative to the file.
func TestExamplesNameTheirSchema(t *testing.T) {
	for _, file := range below("manifests/examples", ".yaml") {
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(content), "\n")
		target, found := strings.CutPrefix(first, modeline)
		require.True(t, found, "%s: the first line must be %s, and a path", file, modeline)
		require.Equal(t, manifestSchema, path.Join(path.Dir(file), target), file)
	}
}

// TestSchemaOfEachKind validates the parameters of the examples with the schema of their kind.
func TestSchemaOfEachKind(t *testing.T) {
	seen := map[string]int{}
	for _, b := range append(blocks(t, "yaml"), files(t)...) {
		parsed, err := render.Decode([]byte(b.text))
		if err != nil || isTemplate(b) {
			continue
		}
		for _, object := range parsed {
			walk(object.Object, func(kind string, parameters map[string]any) {
				seen[kind]++
				require.NoError(t, compileSchema(t, "schemas/"+kind+".schema.json").Validate(parameters), b)
			})
		}
	}
	for _, kind := range []string{"CELDeviceConstraint", "CELDevicePreference", "CELNodeSetConstraint", "DeviceAttributes", "DynamicResourcesCELArgs"} {
		require.Positive(t, seen[kind], kind)
	}
}

// walk calls found with the parameters of celset in a value.
func walk(value any, found func(kind string, parameters map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		version, _ := value["apiVersion"].(string)
		kind, _ := value["kind"].(string)
		if version == "celset.dev/v1alpha1" || version == "config.celset.dev/v1alpha1" {
			found(kind, value)
			return
		}
		for _, one := range value {
			walk(one, found)
		}
	case []any:
		for _, one := range value {
			walk(one, found)
		}
	}
}
