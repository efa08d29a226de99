// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// fileHeader stands at the top of stored cases.
const fileHeader = `# Copyright The celset Authors.
# SPDX-License-Identifier: Apache-2.0

`

// String is the case as YAML, without fields that are empty but always encoded.
func (c *Case) String() string {
	encoded, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprintf("case %q can't be printed: %v", c.Description, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return fmt.Sprintf("case %q can't be printed: %v", c.Description, err)
	}
	prune(fields)
	text, err := yaml.Marshal(fields)
	if err != nil {
		return fmt.Sprintf("case %q can't be printed: %v", c.Description, err)
	}
	return string(text)
}

// prune removes features that are off and status that says nothing.
func prune(fields map[string]any) {
	if features, ok := fields["features"].(map[string]any); ok {
		maps.DeleteFunc(features, func(_ string, on any) bool { return on == false })
	}
	if node, ok := fields["node"].(map[string]any); ok {
		delete(node, "spec")
		if status, ok := node["status"].(map[string]any); ok {
			maps.DeleteFunc(status, func(name string, _ any) bool { return name != "declaredFeatures" })
			deleteEmpty(node, "status")
		}
	}
	if claims, ok := fields["claims"].([]any); ok {
		for _, claim := range claims {
			deleteEmpty(claim.(map[string]any), "status")
		}
	}
}

func deleteEmpty(fields map[string]any, name string) {
	if value, ok := fields[name].(map[string]any); ok && len(value) == 0 {
		delete(fields, name)
	}
}

// GoString makes test frameworks print YAML instead of pointers.
func (c *Case) GoString() string { return "\n" + c.String() }

// Parse reads a case from YAML. It refuses unknown fields.
func Parse(text []byte) (*Case, error) {
	c := &Case{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, fmt.Errorf("parse case: %w", err)
	}
	if c.Node == nil {
		return nil, fmt.Errorf("parse case: field node is missing: a case is about one node")
	}
	return c, nil
}

// Load reads a case from a YAML file.
func Load(path string) (*Case, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Store writes the case into a YAML file, whose folder is created if need be. A
// file with the same content is left alone.
func (c *Case) Store(path string) error {
	text := []byte(fileHeader + c.String())
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
