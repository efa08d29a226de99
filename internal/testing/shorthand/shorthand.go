// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shorthand parses claims and classes in a short form. An entry of their config has the form of the API, or one of
// these forms:
//
//	constraint: {name: ring4, expression: "true"}   # a CELDeviceConstraint for celset.dev
//	preference: {name: near, type: Policy, policy: KeepWhole}   # a CELDevicePreference
//	nodeSet: {name: rack, expression: "true"}       # a CELNodeSetConstraint
//	parameters: '{"kind": 1}'                       # parameters for celset.dev, as they are
package shorthand

import (
	"encoding/json"
	"maps"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Claim returns the claim default/four. Its spec.devices is parsed from YAML texts. Fields of later texts replace fields of
// earlier texts.
func Claim(devices ...string) (*resourceapi.ResourceClaim, error) {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "four"}}
	raw, err := read(devices, &claim.Spec.Devices)
	for i, parameters := range raw {
		claim.Spec.Devices.Config[i].Opaque.Parameters.Raw = []byte(parameters)
	}
	return claim, err
}

// Class returns a class with the given name. Its spec is parsed from YAML.
func Class(name, spec string) (*resourceapi.DeviceClass, error) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	raw, err := read([]string{spec}, &class.Spec)
	for i, parameters := range raw {
		class.Spec.Config[i].Opaque.Parameters.Raw = []byte(parameters)
	}
	return class, err
}

// numbers makes a decoder keep all digits of numbers.
func numbers(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// read decodes the texts into an object. It returns parameters that are given as literal text, by the index of their config
// entry.
func read(texts []string, into any) (raw map[int]string, err error) {
	content := map[string]any{}
	for _, text := range texts {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(text), &fields, numbers); err != nil {
			return nil, err
		}
		maps.Copy(content, fields)
	}
	raw = map[int]string{}
	entries, _ := content["config"].([]any)
	for i := range entries {
		entry, ok := entries[i].(map[string]any)
		if !ok {
			continue
		}
		var parameters any
		for key, kind := range map[string]string{"constraint": "CELDeviceConstraint", "preference": "CELDevicePreference", "nodeSet": "CELNodeSetConstraint"} {
			if fields, ok := entry[key].(map[string]any); ok {
				fields["apiVersion"], fields["kind"] = "celset.dev/v1alpha1", kind
				parameters = fields
				delete(entry, key)
			}
		}
		if text, ok := entry["parameters"].(string); ok {
			raw[i], parameters = text, map[string]any{}
			delete(entry, "parameters")
		}
		if parameters != nil {
			entry["opaque"] = map[string]any{"driver": "celset.dev", "parameters": parameters}
		}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return raw, yaml.UnmarshalStrict(data, into)
}
