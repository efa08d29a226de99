// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/celset/celset/apis/internal/strictjson"
)

// Decode decodes the JSON of the opaque parameters of a definition. It rejects an unknown apiVersion or kind, an unknown,
// misspelt or duplicate field, a wrong type and trailing data. The error is an [*Error] with paths that start at "parameters".
// Decode does not validate the values of name and expression: [ValidateDefinition] does.
func Decode(raw []byte) (*CELDeviceConstraint, error) {
	def, errs := decode(raw, field.NewPath("parameters"))
	if len(errs) > 0 {
		return nil, &Error{Errors: errs}
	}
	return def, nil
}

func decode(raw []byte, path *field.Path) (*CELDeviceConstraint, field.ErrorList) {
	meta, errs := strictjson.TypeMeta(raw, path)
	if len(errs) > 0 {
		return nil, errs
	}
	errs, known := checkType(meta.APIVersion, meta.Kind, path, Kind, PreferenceKind, NodeSetConstraintKind)
	if !known {
		// The object has another type, so its fields can't be checked here.
		return nil, errs
	}
	def := &CELDeviceConstraint{}
	errs = append(errs, strictjson.Unmarshal(raw, def, path)...)
	if len(errs) > 0 {
		return nil, errs
	}
	return def, nil
}

// checkType checks that apiVersion and kind name the wanted type of this package. known is false if a present value names
// another type. If a value is absent, checkType returns an error, but known stays true: the field may be misspelt, so the
// caller also checks the other fields. others are further kinds that the error message suggests.
func checkType(apiVersion, kind string, path *field.Path, wanted string, others ...string) (errs field.ErrorList, known bool) {
	known = true
	for _, f := range []struct {
		name, value string
		want        []string
	}{
		{"apiVersion", apiVersion, []string{SchemeGroupVersion.String()}},
		{"kind", kind, append([]string{wanted}, others...)},
	} {
		switch f.value {
		case f.want[0]:
		case "":
			errs = append(errs, field.Required(path.Child(f.name), "must be "+strings.Join(f.want, " or ")))
		default:
			known = false
			errs = append(errs, field.NotSupported(path.Child(f.name), f.value, f.want))
		}
	}
	return errs, known
}
