// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-tools/pkg/markers"
)

// draft is the version of JSON schema that editors support.
const draft = "http://json-schema.org/draft-07/schema#"

// schema is a JSON schema, or a part of one.
type schema map[string]any

func document(title string, of schema) schema {
	result := schema{"$schema": draft, "title": title}
	maps.Copy(result, of)
	return result
}

// link matches a link in a Go doc comment.
var link = regexp.MustCompile(`\[([A-Z][A-Za-z.]*)\]`)

// close makes a schema refuse unknown fields, as celset's decoders do, and removes extensions for API servers.
func (s schema) close() {
	isOpen := s["x-kubernetes-preserve-unknown-fields"] == true
	maps.DeleteFunc(s, func(key string, _ any) bool { return strings.HasPrefix(key, "x-kubernetes-") })
	if description, ok := s["description"].(string); ok {
		s["description"] = link.ReplaceAllString(strings.ReplaceAll(description, "\n", " "), "$1")
	}
	if properties := s.properties(); len(properties) > 0 {
		if !isOpen {
			s["additionalProperties"] = false
		}
		for name := range properties {
			s.property(name).close()
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below, ok := s[key].(map[string]any); ok {
			schema(below).close()
		}
	}
}

func (s schema) properties() map[string]any {
	properties, _ := s["properties"].(map[string]any)
	return properties
}

func (s schema) property(name string) schema {
	property, _ := s.properties()[name].(map[string]any)
	return property
}

// identify requires the apiVersion and the kind, or makes them optional if anonymous is set.
func (s schema) identify(apiVersion, kind string, anonymous bool) {
	s.properties()["apiVersion"] = schema{"type": "string", "const": apiVersion, "description": "The version of the format."}
	s.properties()["kind"] = schema{"type": "string", "const": kind, "description": "The kind of these parameters."}
	if anonymous {
		return
	}
	required, _ := s["required"].([]any)
	s["required"] = append([]any{"apiVersion", "kind"}, required...)
}

// unite requires that the discriminator of a union names the member that is set, and that no other member is set. The
// discriminator spells the member with a capital letter.
func (s schema) unite(info *markers.TypeInfo) {
	var discriminator string
	var members []string
	for _, field := range info.Fields {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Markers.Get("unionDiscriminator") != nil {
			discriminator = name
		}
		if field.Markers.Get("unionMember") != nil {
			members = append(members, name)
		}
	}
	if discriminator == "" {
		return
	}
	var cases []any
	for _, member := range members {
		value := strings.ToUpper(member[:1]) + member[1:]
		others := schema{}
		for _, other := range members {
			if other != member {
				others[other] = false
			}
		}
		cases = append(cases, schema{
			"if":   schema{"properties": schema{discriminator: schema{"const": value}}, "required": []any{discriminator}},
			"then": schema{"required": []any{member}, "properties": others},
		})
	}
	s["allOf"] = cases
}

// manifests returns a schema for any object of Kubernetes. It checks celset's parameters wherever an object may have them, and
// whole objects of the CRDs.
func manifests(of map[string]schema, objects []resource) schema {
	definitions := schema{}
	var cases []any
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		definitions[kind] = of[kind]
	}
	definitions["parameters"] = parameters()
	definitions["configuration"] = when(schema{"driver": schema{"const": "celset.dev"}}, schema{"parameters": reference("parameters")})
	configurations := array(schema{"type": "object", "properties": schema{"opaque": reference("configuration")}})
	devices := object("devices", object("config", configurations))
	for kind, spec := range map[string]schema{
		"DeviceClass":           object("config", configurations),
		"ResourceClaim":         devices,
		"ResourceClaimTemplate": object("spec", devices),
	} {
		cases = append(cases, when(schema{"apiVersion": schema{"pattern": "^resource\\.k8s\\.io/"}, "kind": schema{"const": kind}}, schema{"spec": spec}))
	}
	plugin := when(schema{"name": schema{"enum": []any{"DynamicResourcesCEL", "DynamicResourcesCELPreference"}}}, schema{"args": reference("DynamicResourcesCELArgs")})
	cases = append(cases,
		when(schema{"kind": schema{"const": "KubeSchedulerConfiguration"}}, schema{"profiles": array(object("pluginConfig", array(plugin)))}),
		when(schema{"kind": schema{"const": "List"}}, schema{"items": array(reference(""))}),
	)
	for _, kind := range kinds {
		if kind.isObject {
			cases = append(cases, schema{
				"if":   schema{"properties": schema{"apiVersion": schema{"const": kind.apiVersion}, "kind": schema{"const": kind.name}}, "required": []any{"apiVersion", "kind"}},
				"then": reference(kind.name),
			})
		}
	}
	for _, one := range objects {
		definitions[one.name()] = one.schema
		cases = append(cases, schema{
			"if":   schema{"properties": schema{"apiVersion": schema{"const": one.apiVersion}, "kind": schema{"const": one.kind}}, "required": []any{"apiVersion", "kind"}},
			"then": reference(one.name()),
		})
	}
	slices.SortStableFunc(cases, func(a, b any) int { return strings.Compare(kindOf(a), kindOf(b)) })
	return document("Manifests with parameters of celset", schema{
		"description": "Any object of Kubernetes. The parameters of celset in the object are checked, and objects of Open Cluster Management.",
		"type":        "object",
		"required":    []any{"apiVersion", "kind"},
		"properties":  schema{"apiVersion": schema{"type": "string"}, "kind": schema{"type": "string"}},
		"allOf":       cases,
		"definitions": definitions,
	})
}

func kindOf(one any) string {
	condition := one.(schema)["if"].(schema)["properties"].(schema)
	return condition["kind"].(schema)["const"].(string)
}

// parameters returns the schema of the parameters of an opaque configuration. It selects the schema by the kind, so that an
// editor reports only mistakes in the fields of that kind.
func parameters() schema {
	var names, cases []any
	for _, kind := range kinds {
		if kind.apiVersion == "celset.dev/v1alpha1" && !kind.isObject {
			names = append(names, kind.name)
			cases = append(cases, schema{"if": schema{"properties": schema{"kind": schema{"const": kind.name}}}, "then": reference(kind.name)})
		}
	}
	return schema{"type": "object", "required": []any{"apiVersion", "kind"}, "properties": schema{"kind": schema{"enum": names}}, "allOf": cases}
}

func when(is, then schema) schema {
	required := slices.Sorted(maps.Keys(is))
	names := make([]any, len(required))
	for i, name := range required {
		names[i] = name
	}
	return schema{"if": schema{"properties": is, "required": names}, "then": schema{"properties": then}}
}

func object(name string, of schema) schema {
	return schema{"type": "object", "properties": schema{name: of}}
}

func array(of schema) schema { return schema{"type": "array", "items": of} }

func reference(name string) schema {
	if name == "" {
		return schema{"$ref": "#"}
	}
	return schema{"$ref": "#/definitions/" + name}
}
