// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"iter"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// lineOf returns the line of a field in the file. If the field is missing, it returns the line of the object around it.
func (s *source) lineOf(path string) int {
	node := s.root
	if node == nil {
		return 0
	}
	line := node.Line
	for _, part := range strings.FieldsFunc(path, func(c rune) bool { return c == '.' || c == '[' || c == ']' }) {
		key, value := child(node, part)
		if value == nil {
			break
		}
		node, line = value, value.Line
		if key != nil {
			line = key.Line
		}
	}
	return line
}

// child returns a value of a mapping by its name, with its key, or a value of a sequence by its index. It does not follow aliases.
func child(node *yaml.Node, name string) (key, value *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == name {
				return node.Content[i], node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(node.Content) {
			return nil, node.Content[i]
		}
	}
	return nil, nil
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}
	return path + "." + name
}

// last returns the last name of a path, without an index.
func last(path string) string {
	path = path[strings.LastIndexByte(path, '.')+1:]
	name, _, _ := strings.Cut(path, "[")
	return name
}

// fieldNames returns the names of all fields, to find the most similar name for an unknown one.
func fieldNames() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, of := range []any{Case{}, Setting{}, Question{}, Machine{}, InUse{}, Expectations{}, Steps{}, ExpressionTest{}} {
			fields := reflect.TypeOf(of)
			for i := range fields.NumField() {
				name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
				if name != "" && !yield(name) {
					return
				}
			}
		}
	}
}

// typeName returns the name of a type in JSON.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Slice:
		return "list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "object"
	default:
		return t.Kind().String()
	}
}
