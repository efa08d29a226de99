// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceattributes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
)

// A run is one call of Enrich.
type run struct {
	nodes   NodeLabels
	objects []standing
}

// An input is an object that applies to the devices of a slice on a node. The inputs of a slice determine its result.
type input struct {
	object *compiled
	node   node
}

// A node has neither name nor labels for devices without a node.
type node struct {
	name   string
	labels map[string]string
}

// same reports whether two inputs give the same attributes.
func (i input) same(as input) bool {
	return i.object == as.object && i.node.name == as.node.name && i.object.labels.same(i.node.labels, as.node.labels)
}

// inputsOf returns the inputs of a slice, by the names of the nodes and then of the objects.
func (r *run) inputsOf(slice *resourceapi.ResourceSlice) []input {
	isForDriver := func(o standing) bool { return o.rejection == nil && o.driver == slice.Spec.Driver }
	if !slices.ContainsFunc(r.objects, isForDriver) {
		return nil
	}
	var inputs []input
	for _, name := range nodesOf(slice) {
		of, isKnown := node{name: name}, false
		if name != "" {
			of.labels, isKnown = r.nodes(name)
		}
		for _, o := range r.objects {
			if isForDriver(o) && (o.selector == nil || isKnown && o.selects(of.labels)) {
				inputs = append(inputs, input{o.compiled, of})
			}
		}
	}
	return inputs
}

// nodesOf returns the names of the nodes to which devices of the slice belong. The name is empty for devices without one node.
func nodesOf(slice *resourceapi.ResourceSlice) []string {
	if !ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		return []string{ptr.Deref(slice.Spec.NodeName, "")}
	}
	names := make([]string, 0, len(slice.Spec.Devices))
	for i := range slice.Spec.Devices {
		names = append(names, nodeOf(slice, i))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func nodeOf(slice *resourceapi.ResourceSlice, device int) string {
	if ptr.Deref(slice.Spec.PerDeviceNodeSelection, false) {
		return ptr.Deref(slice.Spec.Devices[device].NodeName, "")
	}
	return ptr.Deref(slice.Spec.NodeName, "")
}

// A result is an enriched slice. It is never modified.
type result struct {
	enriched *resourceapi.ResourceSlice
	// origins maps, for each device, an attribute to the name of the object that defines it. It is nil for a device without such
	// attributes.
	origins []map[resourceapi.QualifiedName]string
	// findings has an entry for each object of the inputs.
	findings []*finding
}

// A finding is the part of an [ObjectReport] from one slice.
type finding struct {
	object     *compiled
	devices    int
	attributes int
	// rows are the indexes of the rows that match a device.
	rows       []int
	withoutRow Examples[string]
	failed     Examples[FailedExpression]
	conflicts  Examples[Conflict]
	overLimit  Examples[string]
}

// enrichSlice computes the result of a slice. The error is the error of the context.
func enrichSlice(ctx context.Context, slice *resourceapi.ResourceSlice, inputs []input) (*result, error) {
	enriched := *slice
	enriched.Spec.Devices = slices.Clone(slice.Spec.Devices)
	r := &result{enriched: &enriched, origins: make([]map[resourceapi.QualifiedName]string, len(slice.Spec.Devices))}
	of := make(map[*compiled]*finding, len(inputs))
	for _, in := range inputs {
		if of[in.object] == nil {
			of[in.object] = &finding{object: in.object}
			r.findings = append(r.findings, of[in.object])
		}
	}
	nodes := make(map[string]*device.ComputedNode, 1)
	for _, in := range inputs {
		if nodes[in.node.name] == nil {
			nodes[in.node.name] = device.NewComputedNode(in.node.name, in.node.labels)
		}
	}
	for i := range enriched.Spec.Devices {
		name := nodeOf(slice, i)
		if nodes[name] == nil {
			continue
		}
		d := newOne(slice, &slice.Spec.Devices[i], nodes[name])
		for _, in := range inputs {
			if in.node.name != name {
				continue
			}
			if err := d.read(ctx, in, of[in.object]); err != nil {
				return nil, err
			}
		}
		attributes, origins := d.decide()
		if len(attributes) > 0 {
			all := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(d.device.Attributes)+len(attributes))
			maps.Copy(all, d.device.Attributes)
			maps.Copy(all, attributes)
			enriched.Spec.Devices[i].Attributes, r.origins[i] = all, origins
		}
	}
	return r, nil
}

// one is a device while its attributes are collected.
type one struct {
	slice  *resourceapi.ResourceSlice
	device *resourceapi.Device
	input  *device.ComputedInput
	said   []statement
}

func newOne(slice *resourceapi.ResourceSlice, of *resourceapi.Device, node *device.ComputedNode) *one {
	return &one{slice: slice, device: of, input: device.NewComputedInput(slice.Spec.Driver, of, node)}
}

// A statement is a value that an object has for an attribute of the device.
type statement struct {
	value
	of *finding
}

// id returns <driver>/<pool>/<device>.
func (d *one) id() string {
	return d.slice.Spec.Driver + "/" + d.slice.Spec.Pool.Name + "/" + d.device.Name
}

// read collects the values of an object. The error is the error of the context.
func (d *one) read(ctx context.Context, in input, of *finding) error {
	of.devices++
	if err := d.compute(ctx, in, of); err != nil {
		return err
	}
	if in.object.table == nil {
		return nil
	}
	key, hasKey := in.object.table.keyOf(d.slice.Spec.Driver, d.device)
	row, hasRow := in.object.table.rows[key]
	if !hasKey || !hasRow {
		of.withoutRow.add(d.id())
		return nil
	}
	of.rows = append(of.rows, row)
	for _, v := range in.object.table.values[row] {
		d.said = append(d.said, statement{v, of})
	}
	return nil
}

func (d *one) compute(ctx context.Context, in input, of *finding) error {
	budget := cel.NewBudget(CostLimit)
	for _, a := range in.object.attributes {
		if budget.Spent() >= CostLimit {
			of.failed.add(FailedExpression{a.name, d.id(), tooExpensive})
			continue
		}
		v, err := a.expression.Evaluate(ctx, d.input, budget)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && v != nil {
			err = checkResult(v)
		}
		switch {
		case err != nil:
			of.failed.add(FailedExpression{a.name, d.id(), shortened(messageOf(err), maxFailure)})
		case v != nil:
			d.said = append(d.said, statement{value{a.qualified, *v}, of})
		}
	}
	return nil
}

// tooExpensive is the message for an expression that is not evaluated because the ones before it have spent the budget.
var tooExpensive = fmt.Sprintf("the evaluations together exceed the cost budget of %d: %s", CostLimit, advice.Budget)

func checkResult(of *resourceapi.DeviceAttribute) error {
	if err := checkValue(of); err != nil {
		return errors.New("the result " + err.Error())
	}
	return nil
}

// messageOf returns a message of one line.
func messageOf(err error) string {
	if failure, ok := errors.AsType[*cel.Error](err); ok {
		return failure.Message
	}
	return err.Error()
}

// decide returns the attributes that the device gets, and the objects that they come from.
func (d *one) decide() (map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, map[resourceapi.QualifiedName]string) {
	if len(d.said) == 0 {
		return nil, nil
	}
	// The sort is stable, so that the first statement of an attribute is from the object with the first name.
	slices.SortStableFunc(d.said, func(a, b statement) int { return cmp.Compare(a.name, b.name) })
	attributes := make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute, len(d.said))
	origins := make(map[resourceapi.QualifiedName]string, len(d.said))
	var accepted []statement
	for rest := d.said; len(rest) > 0; {
		same := rest
		for i := range rest {
			if rest[i].name != rest[0].name {
				same = rest[:i]
				break
			}
		}
		rest = rest[len(same):]
		if d.reportConflicts(same) {
			continue
		}
		accepted = append(accepted, same...)
		attributes[same[0].name], origins[same[0].name] = same[0].value.value, same[0].of.object.name
	}
	if d.exceedsLimits(attributes) {
		d.reportLimit(accepted)
		return nil, nil
	}
	for i, s := range accepted {
		if isRepeated := i > 0 && accepted[i-1].name == s.name && accepted[i-1].of == s.of; !isRepeated {
			s.of.attributes++
		}
	}
	return attributes, origins
}

// reportConflicts reports whether statements about one attribute differ. It adds a conflict for each object.
func (d *one) reportConflicts(same []statement) bool {
	differs := func(s statement) bool { return !reflect.DeepEqual(s.value.value, same[0].value.value) }
	if len(same) == 1 || !slices.ContainsFunc(same, differs) {
		return false
	}
	for i, s := range same {
		if i > 0 && same[i-1].of == s.of {
			continue
		}
		s.of.conflicts.add(Conflict{s.name, d.id(), otherThan(s.of, same)})
	}
	return true
}

// otherThan returns the name of the first other object, or of the object itself if there is no other one.
func otherThan(of *finding, same []statement) string {
	for _, s := range same {
		if s.of != of {
			return s.of.object.name
		}
	}
	return of.object.name
}

func (d *one) exceedsLimits(added map[resourceapi.QualifiedName]resourceapi.DeviceAttribute) bool {
	if len(d.device.Attributes)+len(d.device.Capacity)+len(added) > resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		return true
	}
	values := 0
	for _, attributes := range []map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{d.device.Attributes, added} {
		for _, a := range attributes {
			values += countValues(&a)
		}
	}
	return values > resourceapi.ResourceSliceMaxAttributeValuesPerDevice
}

func (d *one) reportLimit(accepted []statement) {
	reported := map[*finding]bool{}
	for _, s := range accepted {
		if !reported[s.of] {
			reported[s.of] = true
			s.of.overLimit.add(d.id())
		}
	}
}

// keyOf returns the key of a device in the table. ok is false if the device lacks the key attribute, or if its value is a list.
func (t *table) keyOf(driver string, of *resourceapi.Device) (key string, ok bool) {
	if t.attribute == "" {
		return of.Name, true
	}
	a, ok := attributeNamed(driver, of, t.attribute)
	switch {
	case !ok:
		return "", false
	case a.StringValue != nil:
		return *a.StringValue, true
	case a.VersionValue != nil:
		return *a.VersionValue, true
	case a.IntValue != nil:
		return strconv.FormatInt(*a.IntValue, 10), true
	case a.BoolValue != nil:
		return strconv.FormatBool(*a.BoolValue), true
	default:
		return "", false
	}
}

// attributeNamed returns an attribute by its qualified name. An attribute without a domain belongs to the domain of the driver.
func attributeNamed(driver string, of *resourceapi.Device, name resourceapi.QualifiedName) (resourceapi.DeviceAttribute, bool) {
	if a, ok := of.Attributes[name]; ok {
		return a, true
	}
	if len(name) > len(driver) && string(name[:len(driver)]) == driver && name[len(driver)] == '/' {
		a, ok := of.Attributes[name[len(driver)+1:]]
		return a, ok
	}
	return resourceapi.DeviceAttribute{}, false
}
