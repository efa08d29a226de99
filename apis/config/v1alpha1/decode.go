// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	goyaml "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	celsetv1alpha1 "github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/internal/strictjson"
)

// DecodeArgs decodes arguments in JSON or YAML, sets the defaults and
// validates. No arguments, that is nil, empty or null, are all defaults.
// Unknown, misspelt and duplicate fields, wrong types and more than one document
// are errors, as are an apiVersion and kind, which may be absent, other than
// those of [DynamicResourcesCELArgs].
//
// Further checks see what was written, without the defaults.
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

// written is [DynamicResourcesCELArgs] with durations and quantities as they are
// written. The decoder would not say which field holds a malformed one.
type written struct {
	metav1.TypeMeta `json:",inline"`
	FilterTimeout   *string `json:"filterTimeout"`
	BindingTimeout  *string `json:"bindingTimeout"`
	AttemptTimeout  *string `json:"attemptTimeout"`
	Budget          *Budget `json:"budget"`
	BackOff         *struct {
		Initial *string `json:"initial"`
		Max     *string `json:"max"`
	} `json:"backOff"`
	Share *struct {
		Percent *int32  `json:"percent"`
		Burst   *string `json:"burst"`
	} `json:"share"`
	DevicePreemption *struct {
		MinCandidateNodesPercentage *int32  `json:"minCandidateNodesPercentage"`
		MinCandidateNodesAbsolute   *int32  `json:"minCandidateNodesAbsolute"`
		HoldTimeout                 *string `json:"holdTimeout"`
	} `json:"devicePreemption"`
	CacheSize         *string                         `json:"cacheSize"`
	Allocator         AllocatorMode                   `json:"allocator"`
	PreferenceBudget  *PreferenceBudget               `json:"preferenceBudget"`
	DefaultPreference celsetv1alpha1.PreferencePolicy `json:"defaultPreference"`

	FragmentationInterval *string `json:"fragmentationInterval"`
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
	var w written
	if errs := strictjson.Unmarshal(raw, &w, path); len(errs) > 0 {
		return nil, errs
	}
	args := &DynamicResourcesCELArgs{
		TypeMeta: w.TypeMeta, Budget: w.Budget, Allocator: w.Allocator,
		PreferenceBudget: w.PreferenceBudget, DefaultPreference: w.DefaultPreference,
	}
	args.FilterTimeout, errs = parseDuration(w.FilterTimeout, path.Child("filterTimeout"), errs)
	args.BindingTimeout, errs = parseDuration(w.BindingTimeout, path.Child("bindingTimeout"), errs)
	args.CacheSize, errs = parseQuantity(w.CacheSize, path.Child("cacheSize"), errs)
	args.AttemptTimeout, errs = parseDuration(w.AttemptTimeout, path.Child("attemptTimeout"), errs)
	args.FragmentationInterval, errs = parseDuration(w.FragmentationInterval, path.Child("fragmentationInterval"), errs)
	if w.BackOff != nil {
		path := path.Child("backOff")
		args.BackOff = &BackOff{}
		args.BackOff.Initial, errs = parseDuration(w.BackOff.Initial, path.Child("initial"), errs)
		args.BackOff.Max, errs = parseDuration(w.BackOff.Max, path.Child("max"), errs)
	}
	if w.Share != nil {
		args.Share = &Share{Percent: w.Share.Percent}
		args.Share.Burst, errs = parseDuration(w.Share.Burst, path.Child("share").Child("burst"), errs)
	}
	if given := w.DevicePreemption; given != nil {
		args.DevicePreemption = &DevicePreemption{
			MinCandidateNodesPercentage: given.MinCandidateNodesPercentage, MinCandidateNodesAbsolute: given.MinCandidateNodesAbsolute,
		}
		args.DevicePreemption.HoldTimeout, errs = parseDuration(given.HoldTimeout, path.Child("devicePreemption").Child("holdTimeout"), errs)
	}
	return args, errs
}

func parseQuantity(text *string, path *field.Path, errs field.ErrorList) (*resource.Quantity, field.ErrorList) {
	if text == nil {
		return nil, errs
	}
	quantity, err := resource.ParseQuantity(*text)
	if err != nil {
		return nil, append(errs, field.Invalid(path, *text, `must be a quantity, such as "256Mi" or "1Gi"`))
	}
	return &quantity, errs
}

func parseDuration(text *string, path *field.Path, errs field.ErrorList) (*metav1.Duration, field.ErrorList) {
	if text == nil {
		return nil, errs
	}
	duration, err := time.ParseDuration(*text)
	if err != nil {
		return nil, append(errs, field.Invalid(path, *text, `must be a duration with a unit, such as "10s" or "1m30s"`))
	}
	return &metav1.Duration{Duration: duration}, errs
}

// toJSON leaves JSON as it is, for the JSON decoder knows more about mistakes
// in it than the YAML decoder, and converts YAML.
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

// checkSingleDocument reads all of raw, of which the conversion to JSON would
// silently ignore what follows the first document.
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
			return errors.New("must be one document, but more follows it")
		}
	}
}
