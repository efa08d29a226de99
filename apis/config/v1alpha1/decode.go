// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/apis/internal/strictjson"
)

// DecodeArgs decodes arguments in JSON or YAML, sets the defaults and validates the arguments. If raw is nil, empty or null,
// all arguments have their defaults. Unknown, misspelt and duplicate fields, wrong types and a second document are errors.
// apiVersion and kind may be absent. If they are present, they must match [DynamicResourcesCELArgs].
//
// The additional checks run before the defaults are set, so that they see only the arguments that the user wrote.
func DecodeArgs(raw []byte, checks ...func(*DynamicResourcesCELArgs, *field.Path) field.ErrorList) (*DynamicResourcesCELArgs, error) {
	path := field.NewPath("args")
	args, errs := decode(raw, path)
	if len(errs) == 0 {
		for _, check := range checks {
			errs = append(errs, check(args, path)...)
		}
		SetDefaults(args)
		errs = append(errs, Validate(args, path)...)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("invalid %s: %w", Kind, errs.ToAggregate())
	}
	return args, nil
}

func decode(raw []byte, path *field.Path) (*DynamicResourcesCELArgs, field.ErrorList) {
	raw, err := toJSON(raw)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(path, field.OmitValueType{}, err.Error())}
	}
	meta, errs := strictjson.TypeMeta(raw, path)
	if errs = append(errs, validateType(meta, path)...); len(errs) > 0 {
		return nil, errs
	}
	args := &DynamicResourcesCELArgs{}
	return args, strictjson.Unmarshal(raw, args, path)
}

// toJSON converts YAML to JSON. If raw is already JSON, it returns raw unchanged, because the JSON decoder reports mistakes
// more precisely than the YAML decoder.
func toJSON(raw []byte) ([]byte, error) {
	if json.Valid(raw) {
		return raw, nil
	}
	if err := checkSingleDocument(raw); err != nil {
		return nil, err
	}
	converted, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, fmt.Errorf("must be JSON or YAML: %w", err)
	}
	return converted, nil
}

// checkSingleDocument returns an error if raw has more than one document. The conversion to JSON would ignore all documents after
// the first.
func checkSingleDocument(raw []byte) error {
	decoder := goyaml.NewDecoder(bytes.NewReader(raw))
	for first := true; ; first = false {
		var document any
		err := decoder.Decode(&document)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("must be JSON or YAML: %w", err)
		case !first && document != nil:
			return errors.New("must be a single document: remove everything after the first document")
		}
	}
}
