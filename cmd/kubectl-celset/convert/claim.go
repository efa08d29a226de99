// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// claim is the spec.devices of a ResourceClaim, or of the claim in a ResourceClaimTemplate.
type claim struct {
	object  *unstructured.Unstructured
	devices map[string]any
	// path is the path of the field devices in the object, for messages.
	path string
}

// claimOf returns the claim in an object. It returns nil if the object is no claim or template, or if the claim has no field
// devices.
func claimOf(object *unstructured.Unstructured) (*claim, error) {
	fields := []string{"spec", "devices"}
	switch object.GetKind() {
	case "ResourceClaim":
	case "ResourceClaimTemplate":
		fields = []string{"spec", "spec", "devices"}
	default:
		return nil, nil
	}
	if object.GroupVersionKind().Group != "resource.k8s.io" {
		return nil, nil
	}
	c := &claim{object: object, path: "spec.devices"}
	if len(fields) > 2 {
		c.path = "spec.spec.devices"
	}
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, fields...)
	if err != nil || !found || value == nil {
		return nil, err
	}
	devices, ok := value.(map[string]any)
	if !ok {
		return nil, c.errorAt("", "must be an object")
	}
	c.devices = devices
	return c, nil
}

// errorAt returns an error about the field at a path relative to devices.
func (c *claim) errorAt(place, format string, args ...any) error {
	return fmt.Errorf("%s %s: %s%s: %s", c.object.GetKind(), c.object.GetName(), c.path, place, fmt.Sprintf(format, args...))
}

// list returns the objects in a list below devices. If the field is absent, the result is empty.
func (c *claim) list(field string) ([]map[string]any, error) {
	value, found := c.devices[field]
	if !found || value == nil {
		return nil, nil
	}
	items, ok := value.([]any)
	if !ok {
		return nil, c.errorAt("."+field, "must be a list")
	}
	result := make([]map[string]any, len(items))
	for i, item := range items {
		if result[i], ok = item.(map[string]any); !ok {
			return nil, c.errorAt(fmt.Sprintf(".%s[%d]", field, i), "must be an object")
		}
	}
	return result, nil
}

// set replaces a list below devices. It removes the field if the list is empty.
func (c *claim) set(field string, items []map[string]any) {
	if len(items) == 0 {
		delete(c.devices, field)
		return
	}
	list := make([]any, len(items))
	for i := range items {
		list[i] = items[i]
	}
	c.devices[field] = list
}
