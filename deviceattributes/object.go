// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// An object is a DeviceAttributes object that Set was called with.
type object struct {
	source *v1alpha1.DeviceAttributes
	// rejection is the mistake of the spec, or the limit of objects. It is nil if the object may be in effect.
	rejection *Rejection
	*compiled
}

// A compiled is the spec of an object. Its address identifies the content: Set keeps it while the name and the spec are the same.
type compiled struct {
	name           string
	driver, domain string
	// selector is nil if the spec selects all nodes, and devices without a node.
	selector   labels.Selector
	attributes []computed
	// table is nil if the spec has no table.
	table  *table
	labels labelSet
	// mistake is nil if the spec is valid. The other fields are incomplete otherwise.
	mistake *Rejection
}

// A computed is a computed attribute.
type computed struct {
	name       string
	qualified  resourceapi.QualifiedName
	expression *device.Computed
}

// compileAll returns the objects, in the order of their names.
func (e *Enricher) compileAll(ctx context.Context, sources []*v1alpha1.DeviceAttributes, before []*object) ([]*object, error) {
	known := make(map[string]*object, len(before))
	for _, o := range before {
		known[o.source.Name] = o
	}
	objects := make([]*object, 0, len(sources))
	for _, source := range oldestFirst(sources) {
		o := &object{source: source}
		if len(objects) >= v1alpha1.MaxDeviceAttributes {
			o.compiled = &compiled{name: source.Name}
			o.rejection = tooManyObjects()
		} else if same := known[source.Name]; same != nil && same.driver != "" && apiequality.Semantic.DeepEqual(same.source.Spec, source.Spec) {
			o.compiled, o.rejection = same.compiled, same.mistake
		} else {
			var err error
			if o.compiled, err = e.compileSpec(ctx, source); err != nil {
				return nil, err
			}
			o.rejection = o.mistake
		}
		objects = append(objects, o)
	}
	slices.SortFunc(objects, func(a, b *object) int { return cmp.Compare(a.name, b.name) })
	return objects, nil
}

// oldestFirst returns the objects by age, so that a new object does not displace an older one. Objects of a file have no age. They
// are new, because the API server would give them the current time. A name that occurs again is left out.
func oldestFirst(objects []*v1alpha1.DeviceAttributes) []*v1alpha1.DeviceAttributes {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *v1alpha1.DeviceAttributes) int {
		x, y := &a.CreationTimestamp, &b.CreationTimestamp
		switch {
		case x.IsZero() && !y.IsZero():
			return 1
		case y.IsZero() && !x.IsZero():
			return -1
		}
		return cmp.Or(x.Compare(y.Time), cmp.Compare(a.Name, b.Name))
	})
	names := make(map[string]bool, len(sorted))
	return slices.DeleteFunc(sorted, func(o *v1alpha1.DeviceAttributes) bool {
		isRepeated := names[o.Name]
		names[o.Name] = true
		return isRepeated
	})
}

func tooManyObjects() *Rejection {
	return &Rejection{wellknown.ReasonTooManyObjects, fmt.Sprintf(
		"%d older DeviceAttributes objects are in effect, which is the limit: delete one of them, or combine objects", v1alpha1.MaxDeviceAttributes)}
}

// compileSpec judges the spec and compiles its expressions. The error is the error of the context.
func (e *Enricher) compileSpec(ctx context.Context, source *v1alpha1.DeviceAttributes) (*compiled, error) {
	spec := &source.Spec
	c := &compiled{name: source.Name, driver: spec.Driver, domain: cmp.Or(spec.Domain, v1alpha1.DefaultAttributesDomain)}
	if c.mistake = c.judge(spec); c.mistake != nil {
		return c, nil
	}
	for i, of := range spec.Attributes {
		expression, err := e.environment.Compile(ctx, of.Expression)
		if mistake, ok := errors.AsType[*cel.Error](err); ok {
			c.mistake = &Rejection{wellknown.ReasonInvalidExpression, shortened(
				fmt.Sprintf("spec.attributes[%d].expression of attribute %s: %v", i, of.Name, mistake), maxMessage)}
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		c.attributes = append(c.attributes, computed{of.Name, c.qualified(of.Name), expression})
		c.labels.add(expression.Labels())
	}
	return c, nil
}

func (c *compiled) qualified(name string) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(c.domain + "/" + name)
}

// selects reports whether the node selector matches the labels of a node.
func (c *compiled) selects(of map[string]string) bool {
	return c.selector == nil || c.selector.Matches(labels.Set(of))
}

// affected reports whether a change of a node's labels can change an attribute of the object.
func (c *compiled) affected(before, after map[string]string) bool {
	was, is := c.selects(before), c.selects(after)
	switch {
	case was != is:
		return true
	case !is:
		return false
	case c.selector != nil && (before == nil) != (after == nil):
		// A selector may match nil, for example if it requires that a label does not exist. But an unknown node is never selected.
		return true
	default:
		return !c.labels.same(before, after)
	}
}

// A labelSet is a set of label keys.
type labelSet struct {
	keys []string
	all  bool
}

func (s *labelSet) add(keys []string, all bool) {
	s.keys = append(s.keys, keys...)
	s.all = s.all || all
}

// same reports whether two nodes have the same labels, as far as the set contains their keys.
func (s *labelSet) same(a, b map[string]string) bool {
	if s.all {
		return maps.Equal(a, b)
	}
	for _, key := range s.keys {
		x, inA := a[key]
		y, inB := b[key]
		if x != y || inA != inB {
			return false
		}
	}
	return true
}

// A table is the table of an object.
type table struct {
	// attribute is the name of the key attribute. It is empty if the rows are for names of devices.
	attribute resourceapi.QualifiedName
	// keys are the keys of the rows. rows maps a key to its index, and values has the values of that row by the order of names.
	keys   []string
	rows   map[string]int
	values [][]value
}

// A value is an attribute and its value.
type value struct {
	name  resourceapi.QualifiedName
	value resourceapi.DeviceAttribute
}

// newTable returns the table of a valid spec.
func newTable(of *v1alpha1.AttributeTable, qualified func(string) resourceapi.QualifiedName) *table {
	t := &table{rows: make(map[string]int, len(of.Rows)), values: make([][]value, len(of.Rows))}
	if of.Key != v1alpha1.TableKeyName {
		t.attribute = resourceapi.QualifiedName(of.Key)
	}
	for i, row := range of.Rows {
		t.keys = append(t.keys, row.Key)
		t.rows[row.Key] = i
		for _, name := range slices.Sorted(maps.Keys(row.Values)) {
			t.values[i] = append(t.values[i], value{qualified(name), row.Values[name]})
		}
	}
	return t
}

// selectorOf returns nil for an absent selector.
func selectorOf(of *metav1.LabelSelector) (labels.Selector, error) {
	if of == nil {
		return nil, nil
	}
	return metav1.LabelSelectorAsSelector(of)
}
