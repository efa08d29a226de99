// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strictjson decodes the JSON of celset's API types and reports every mistake. Unknown, misspelt and duplicate fields,
// wrong types and trailing data are errors, each with the path of the field. The package uses sigs.k8s.io/json and converts its
// errors to field errors.
package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Unmarshal decodes raw into the struct that into points to. path is the path of raw in the user's object and must not be nil.
// If Unmarshal returns errors, the caller must not use the struct.
func Unmarshal(raw []byte, into any, path *field.Path) field.ErrorList {
	strictErrs, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		if errs := malformedFields(raw, reflect.TypeOf(into).Elem(), path); len(errs) > 0 {
			return errs
		}
		return field.ErrorList{malformed(err, path)}
	}
	var errs field.ErrorList
	for _, strictErr := range strictErrs {
		errs = append(errs, notStrict(strictErr, path))
	}
	return errs
}

// TypeMeta returns apiVersion and kind of raw and ignores all other fields. With it a caller can distinguish an object of
// another type or version from an object with a mistake in a field.
func TypeMeta(raw []byte, path *field.Path) (metav1.TypeMeta, field.ErrorList) {
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &meta); err != nil {
		return metav1.TypeMeta{}, field.ErrorList{malformed(err, path)}
	}
	return meta, nil
}

// malformedFields returns an error for each duration and quantity that can't be parsed. It is needed because the decoder's
// error does not name the field.
func malformedFields(raw []byte, t reflect.Type, path *field.Path) field.ErrorList {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	want := ""
	switch t {
	case reflect.TypeFor[metav1.Duration]():
		want = `must be a duration with a unit, such as "10s" or "1m30s"`
	case reflect.TypeFor[resource.Quantity]():
		want = `must be a quantity, such as "256Mi" or "1Gi"`
	}
	if want != "" {
		var text string
		if json.Unmarshal(raw, &text) != nil || json.Unmarshal(raw, reflect.New(t).Interface()) == nil {
			return nil
		}
		return field.ErrorList{field.Invalid(path, text, want)}
	}
	var values map[string]json.RawMessage
	if t.Kind() != reflect.Struct || json.Unmarshal(raw, &values) != nil {
		return nil
	}
	var errs field.ErrorList
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if value, found := values[name]; found && name != "" {
			errs = append(errs, malformedFields(value, f.Type, path.Child(name))...)
		}
	}
	return errs
}

// malformed converts an error that stopped the decoding to a field error.
func malformed(err error, path *field.Path) *field.Error {
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if typeErr.Field != "" {
			path = path.Child(typeErr.Field)
		}
		detail := fmt.Sprintf("must be %s, but is: %s", jsonType(typeErr.Type), typeErr.Value)
		return field.TypeInvalid(path, field.OmitValueType{}, detail)
	}
	detail := "must be valid JSON: " + err.Error()
	if isSyntaxErr, offset := kjson.SyntaxErrorOffset(err); isSyntaxErr {
		detail += fmt.Sprintf(" (at byte %d)", offset)
	}
	return field.Invalid(path, field.OmitValueType{}, detail)
}

// jsonType returns the name of the JSON type that decodes into t, for the types in celset's API.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Struct:
		return "an object"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	default:
		return "of type " + t.String()
	}
}

// notStrict converts the decoder's error about an unknown or a duplicate field to a field error.
func notStrict(err error, path *field.Path) *field.Error {
	// The decoder's message begins with the kind of the mistake. The quoted path follows.
	detail := "duplicate field: set it once"
	if strings.HasPrefix(err.Error(), "unknown") {
		detail = "unknown field: correct its name (names are case-sensitive), or update celset if a newer version has the field (--version prints the version of a program)"
	}
	if fieldErr, ok := errors.AsType[kjson.FieldError](err); ok {
		path = child(path, fieldErr.FieldPath())
	}
	return field.Invalid(path, field.OmitValueType{}, detail)
}

// child appends a name that a user chose to a path. The name may be preceded by the names of enclosing objects. If one of the
// names is not an identifier, child quotes all of them, so that the error message stays on one line.
func child(path *field.Path, name string) *field.Path {
	names := strings.Split(name, ".")
	for _, name := range names {
		if len(content.IsCIdentifier(name)) > 0 {
			return path.Key(strconv.Quote(strings.Join(names, ".")))
		}
	}
	return path.Child(names[0], names[1:]...)
}
