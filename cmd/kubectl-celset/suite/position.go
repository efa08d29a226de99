// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"cmp"
	"iter"
	"reflect"
	"strings"

	"github.com/celset/celset/internal/yamlpath"
)

// lineOf returns the line of a field in the file. If the field is missing, it returns the line of the object around it.
func (s *source) lineOf(path string) int {
	if s.root == nil {
		return 0
	}
	key, value := yamlpath.Find(s.root, path)
	return cmp.Or(key, value).Line
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
