// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package yamlpath finds the YAML node of a field, so that a message can name its line and column:
//
//	key, value := yamlpath.Find(root, "spec.devices.requests[0].exactly")
//
// A path consists of names of fields and of indices in brackets. In place of an index, it may have the value of the field "name"
// of an item. A name with dots must be in brackets.
package yamlpath

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Find returns the node of a field, and the node of its key, which is nil for the root and for items of sequences. For a missing
// field, it returns the innermost field on the path.
func Find(root *yaml.Node, path string) (key, value *yaml.Node) {
	value = root
	for _, step := range Steps(path) {
		nextKey, next := Child(Resolve(value), step)
		if next == nil {
			return key, value
		}
		key, value = nextKey, next
	}
	return key, value
}

// Steps splits a path into names and indices.
func Steps(path string) []string {
	var result []string
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			end := strings.IndexByte(path, ']')
			if end < 0 {
				return result
			}
			result, path = append(result, strings.Trim(path[1:end], `"`)), path[end+1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			result, path = append(result, path[:end]), path[end:]
		}
	}
	return result
}

// Child returns a field of a mapping with its key, or an item of a sequence. It follows no alias.
func Child(of *yaml.Node, step string) (key, value *yaml.Node) {
	switch of.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(of.Content); i += 2 {
			if of.Content[i].Value == step {
				return of.Content[i], of.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(of.Content) {
			return nil, of.Content[i]
		}
		for _, item := range of.Content {
			if item = Resolve(item); item.Kind != yaml.MappingNode {
				continue
			}
			if _, name := Child(item, "name"); name != nil && name.Value == step {
				return nil, item
			}
		}
	}
	return nil, nil
}

// Resolve returns the node to which an alias refers, or the node itself. The parser rejects an alias that contains itself, but an
// alias may refer to an alias.
func Resolve(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode && node.Alias != nil {
		node = node.Alias
	}
	return node
}
