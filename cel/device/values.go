// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"strings"

	"github.com/blang/semver/v4"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// attributeValue converts the value of an attribute. If the conversion fails, the result is an error value, so that only
// expressions that read the attribute fail.
func attributeValue(attribute resourceapi.DeviceAttribute) ref.Val {
	switch {
	case attribute.IntValues != nil:
		return types.DefaultTypeAdapter.NativeToValue(attribute.IntValues)
	case attribute.BoolValues != nil:
		return types.DefaultTypeAdapter.NativeToValue(attribute.BoolValues)
	case attribute.StringValues != nil:
		return types.DefaultTypeAdapter.NativeToValue(attribute.StringValues)
	case attribute.VersionValues != nil:
		return versions(attribute.VersionValues)
	case attribute.IntValue != nil:
		return types.Int(*attribute.IntValue)
	case attribute.BoolValue != nil:
		return types.Bool(*attribute.BoolValue)
	case attribute.StringValue != nil:
		return types.String(*attribute.StringValue)
	case attribute.VersionValue != nil:
		return version(*attribute.VersionValue)
	default:
		return types.NewErr("unsupported attribute value")
	}
}

func versions(texts []string) ref.Val {
	values := make([]ref.Val, len(texts))
	for i, text := range texts {
		values[i] = version(text)
		if types.IsError(values[i]) {
			return values[i]
		}
	}
	return types.NewRefValList(types.DefaultTypeAdapter, values)
}

func version(text string) ref.Val {
	parsed, err := semver.Parse(text)
	if err != nil {
		return types.NewErr("parse semantic version: %v", err)
	}
	return apiservercel.Semver{Version: parsed}
}

// capacityValue returns a CEL quantity that points into capacity, the function's copy of its argument. Each read of the
// quantity makes a further copy ([onRead]).
func capacityValue(capacity resourceapi.DeviceCapacity) ref.Val {
	return apiservercel.Quantity{Quantity: &capacity.Value}
}

// byDomains converts entries and groups them by domain, then by name. Names without a domain belong to the domain of the
// driver.
func byDomains[V any](driver string, entries map[resourceapi.QualifiedName]V, convert func(V) ref.Val) map[string]map[string]ref.Val {
	values := make(map[string]map[string]ref.Val)
	for name, entry := range entries {
		domain, id := split(name, driver)
		if values[domain] == nil {
			values[domain] = make(map[string]ref.Val)
		}
		values[domain][id] = convert(entry)
	}
	return values
}

func domains(values map[string]map[string]ref.Val) traits.Mapper {
	result := make(map[string]ref.Val, len(values))
	for domain, ids := range values {
		result[domain] = newOrderedMap(ids)
	}
	return domainMap{newOrderedMap(result)}
}

func split(name resourceapi.QualifiedName, driver string) (domain, id string) {
	if domain, id, qualified := strings.Cut(string(name), "/"); qualified {
		return domain, id
	}
	return driver, string(name)
}
