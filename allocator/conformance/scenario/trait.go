// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// A Trait is an interesting property of a case, with a function that removes the property.
type Trait struct {
	Name string
	// Strip removes the trait from the case and reports whether the case had the trait. A test compares the outcomes with and
	// without the trait to find out whether the trait mattered.
	Strip func(*Case) bool
}

// IsRare reports whether the trait affects the outcome so rarely that each case with the trait must be examined.
func (t Trait) IsRare() bool { return slices.Contains(rareTraits, t.Name) }

var rareTraits = []string{
	"alternative over the limit", "second counter set", "counters of devices for other nodes", "shares without capacity",
	"valid values", "maximum",
}

// These are paths of fields. A path goes through pointers, all elements of lists and all values of maps. {a,b} means both.
const (
	allClaims    = "Claims.Spec.Devices."
	allRequests  = allClaims + "Requests.{Exactly,FirstAvailable}"
	alternatives = allClaims + "Requests.FirstAvailable"
	allSlices    = "Slices.Spec."
	allDevices   = allSlices + "Devices"
	policies     = allDevices + ".Capacity.RequestPolicy"
	allRanges    = policies + ".ValidRange"
)

// Traits lists all traits.
var Traits = []Trait{
	{"several claims", first("Claims")},
	{"several requests", first(allClaims + "Requests")},
	{"count above one", eachAmount(func(_ *resourceapi.DeviceAllocationMode, n *int64) bool { return replace(n, min(*n, 1)) })},
	{"count zero", eachAmount(func(mode *resourceapi.DeviceAllocationMode, n *int64) bool {
		return *mode == resourceapi.DeviceAllocationModeExactCount && replace(n, max(*n, 1))
	})},
	{"all devices", eachAmount(func(mode *resourceapi.DeviceAllocationMode, n *int64) bool {
		changed := *mode == resourceapi.DeviceAllocationModeAll
		if changed {
			*mode, *n = resourceapi.DeviceAllocationModeExactCount, 1
		}
		return changed
	})},
	{"alternatives", edit(allClaims+"Requests", stripAlternatives)},
	{"second alternatives", first(alternatives)},
	// An alternative counts as over the limit if it and two more devices exceed the limit of a claim.
	{"alternative over the limit", edit(alternatives+".Count", func(count *int64) bool {
		return *count > resourceapi.AllocationResultsMaxSize-2 && replace(count, 1)
	})},
	{"reference to an alternative", edit(allClaims+"{Constraints,Config}.Requests", stripAlternativeNames)},
	{"admin access", edit(allClaims+"Requests.Exactly.AdminAccess", func(is *bool) bool { return replace(is, false) })},
	{"request selectors", no(allRequests + ".Selectors")},
	{"class selectors", no("Classes.Spec.Selectors")},
	{"class configuration", no("Classes.Spec.Config")},
	{"claim configuration", no(allClaims + "Config")},
	{"match attribute", stripConstraints(func(c resourceapi.DeviceConstraint) bool { return c.MatchAttribute != nil && !isReference(c) })},
	{"distinct attribute", stripConstraints(func(c resourceapi.DeviceConstraint) bool { return c.DistinctAttribute != nil })},
	{"CEL constraint", stripConstraints(isReference)},
	{"default constraint", edit("Classes.Spec.Config.DeviceConfiguration", stripDefault)},
	{"constraint over some requests", stripConstraints(func(c resourceapi.DeviceConstraint) bool { return len(c.Requests) > 0 })},
	{"derived attributes", no(allRequests + ".DerivedAttributes")},
	{"list attributes", edit(allDevices+".Attributes", stripList)},
	{"allocated devices", no("Allocated")},
	{"taints", no(allDevices + ".Taints")},
	{"tolerations", func(c *Case) bool { return has(allDevices+".Taints")(c) && no(allRequests+".Tolerations")(c) }},
	{"binding conditions", both(no(allDevices+".BindingFailureConditions"), no(allDevices+".BindingConditions"))},
	{"binds to node", no(allDevices + ".BindsToNode")},
	{"skip node operations", no(allSlices + "SkipNodeOperations")},
	{"per-device node selection", edit("Slices.Spec", func(s *resourceapi.ResourceSliceSpec) bool {
		return replace(&s.PerDeviceNodeSelection, nil) && replace(&s.AllNodes, ptr.To(true))
	})},
	{"node selector", edit("Slices.Spec", func(s *resourceapi.ResourceSliceSpec) bool {
		return replace(&s.NodeSelector, nil) && replace(&s.AllNodes, ptr.To(true))
	})},
	{"slices for other nodes", edit(allSlices+"NodeName", func(name *string) bool { return replace(name, nodeName) })},
	{"several pools", stripSlices(func(s *resourceapi.ResourceSlice) bool {
		return s.Spec.Driver != gpuDriver || s.Spec.Pool.Name != poolNames[0]
	})},
	{"order of slice names", stripSliceNames},
	// Strip turns older slices into current slices. Deleting the older slices would never change the outcome.
	{"older generation", edit(allSlices+"Pool.Generation", func(g *int64) bool { return replace(g, max(*g, latestGeneration)) })},
	{"newer generation", stripSlices(func(s *resourceapi.ResourceSlice) bool { return s.Spec.Pool.Generation > latestGeneration })},
	{"shared counters", both(no(allSlices+"SharedCounters"), no(allDevices+".ConsumesCounters"))},
	{"second counter set", first(allDevices + ".ConsumesCounters")},
	{"counters of allocated devices", stripConsumers(func(*resourceapi.ResourceSlice, *resourceapi.Device) bool { return true })},
	{"counters of devices for other nodes", stripConsumers(isElsewhere)},
	{"compatibility groups", no(allDevices + ".ConsumesCounters.CompatibilityGroups")},
	{"multiple allocations", edit(allDevices+".AllowMultipleAllocations", func(is *bool) bool { return replace(is, false) })},
	{"capacity requests", no(allRequests + ".Capacity")},
	{"request policies", no(policies)},
	{"valid values", no(policies + ".ValidValues")},
	{"steps", no(allRanges + ".Step")},
	{"maximum", no(allRanges + ".Max")},
	{"shares", no("Shares")},
	// A device without other shares becomes an unused device.
	{"shares without capacity", func(c *Case) bool {
		before := len(c.Shares)
		c.Shares = slices.DeleteFunc(c.Shares, func(s Share) bool { return s.Consumed == nil })
		return len(c.Shares) < before
	}},
}

// A Gate is an optional feature of allocators.
type Gate struct {
	Name string
	// IsUsed reports whether the feature can matter in the case.
	IsUsed func(*Case) bool
}

// Gates lists all optional features by the names of their fields. A test compares the outcomes with a feature on and off to
// find out whether the feature mattered.
var Gates = []Gate{
	{"AdminAccess", has(allClaims + "Requests.Exactly.AdminAccess")},
	{"CompatibilityGroups", has(allDevices + ".ConsumesCounters.CompatibilityGroups")},
	{"ConsumableCapacity", func(*Case) bool { return true }},
	{"DerivedAttributes", has(allRequests + ".DerivedAttributes")},
	{"DeviceBindingAndStatus", has(allDevices + ".BindingConditions")},
	{"DeviceTaints", has(allDevices + ".Taints")},
	{"FractionalCapacityRange", has(policies)},
	{"ListTypeAttributes", func(c *Case) bool { return has(allRequests+".DerivedAttributes")(c) || usesLists(c) }},
	{"OptionalNodeOperations", has(allSlices + "SkipNodeOperations")},
	{"PartitionableDevices", has(allSlices + "{PerDeviceNodeSelection,SharedCounters,Devices.ConsumesCounters}")},
	{"PrioritizedList", has(alternatives)},
}

// Flip returns a shallow copy of the case with the feature turned on if it was off, or off if it was on.
func (gate Gate) Flip(c *Case) *Case {
	result := *c
	on := reflect.ValueOf(&result.Features).Elem().FieldByName(gate.Name)
	on.SetBool(!on.Bool())
	return &result
}

// visit calls f with the values at a path, and reports whether any call returned true.
func visit(v reflect.Value, path string, f func(reflect.Value) bool) (found bool) {
	if before, inner, ok := strings.Cut(path, "{"); ok && before == "" {
		inner, after, _ := strings.Cut(inner, "}")
		for option := range strings.SplitSeq(inner, ",") {
			found = visit(v, option+after, f) || found
		}
		return found
	}
	return elements(v, func(v reflect.Value) bool {
		field, rest, goesOn := strings.Cut(path, ".")
		v = v.FieldByName(field)
		return !goesOn && f(v) || goesOn && visit(v, rest, f)
	}, reflect.Struct)
}

// elements calls f with each value of the given kinds in v: the target of a pointer, the elements of a list, the values of a
// map. It reports whether a call returned true.
func elements(v reflect.Value, f func(reflect.Value) bool, kinds ...reflect.Kind) (found bool) {
	switch {
	case slices.Contains(kinds, v.Kind()):
		return f(v)
	case v.Kind() == reflect.Pointer:
		return !v.IsNil() && elements(v.Elem(), f, kinds...)
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			found = elements(v.Index(i), f, kinds...) || found
		}
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			if elements(value, f, kinds...) {
				v.SetMapIndex(key, value)
				found = true
			}
		}
	}
	return found
}

func isEmpty(v reflect.Value) bool { return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 }

// has returns a function that reports whether a case has a value that is not empty at the path.
func has(path string) func(*Case) bool {
	return func(c *Case) bool {
		return visit(reflect.ValueOf(c), path, func(v reflect.Value) bool { return !isEmpty(v) })
	}
}

// no returns a function that sets the values at the path to their zero values.
func no(path string) func(*Case) bool {
	return func(c *Case) bool {
		return visit(reflect.ValueOf(c), path, func(v reflect.Value) bool {
			changed := !isEmpty(v)
			v.SetZero()
			return changed
		})
	}
}

// first returns a function that removes all elements but the first from the lists at the path.
func first(path string) func(*Case) bool {
	return func(c *Case) bool {
		return visit(reflect.ValueOf(c), path, func(v reflect.Value) bool {
			changed := v.Len() > 1
			v.Set(v.Slice(0, min(v.Len(), 1)))
			return changed
		})
	}
}

// edit returns a function that calls strip with each value of type T at the path.
func edit[T any](path string, strip func(*T) bool) func(*Case) bool {
	kind := reflect.TypeFor[T]().Kind()
	return func(c *Case) bool {
		return visit(reflect.ValueOf(c), path, func(v reflect.Value) bool {
			return elements(v, func(v reflect.Value) bool { return strip(v.Addr().Interface().(*T)) }, kind)
		})
	}
}

func both(one, other func(*Case) bool) func(*Case) bool {
	return func(c *Case) bool {
		changed := one(c)
		return other(c) || changed
	}
}

// replace sets a field and reports whether its value changed.
func replace[T comparable](field *T, value T) bool {
	changed := *field != value
	*field = value
	return changed
}

func isTrue(b *bool) bool { return b != nil && *b }

func eachAmount(strip func(*resourceapi.DeviceAllocationMode, *int64) bool) func(*Case) bool {
	of := func(r *resourceapi.DeviceRequest) (changed bool) {
		if r.Exactly != nil {
			changed = strip(&r.Exactly.AllocationMode, &r.Exactly.Count)
		}
		for i := range r.FirstAvailable {
			changed = strip(&r.FirstAvailable[i].AllocationMode, &r.FirstAvailable[i].Count) || changed
		}
		return changed
	}
	return edit(allClaims+"Requests", of)
}

// stripAlternatives replaces a prioritized list by a plain request for its first alternative.
func stripAlternatives(r *resourceapi.DeviceRequest) bool {
	if len(r.FirstAvailable) == 0 {
		return false
	}
	a := r.FirstAvailable[0]
	r.FirstAvailable, r.Exactly = nil, &resourceapi.ExactDeviceRequest{
		DeviceClassName: a.DeviceClassName, Selectors: a.Selectors, AllocationMode: a.AllocationMode, Count: a.Count,
		Tolerations: a.Tolerations, Capacity: a.Capacity, DerivedAttributes: a.DerivedAttributes,
	}
	return true
}

// stripAlternativeNames makes a constraint or configuration that names an alternative apply to a request that does not exist.
func stripAlternativeNames(names *[]string) bool {
	changed := slices.ContainsFunc(*names, func(name string) bool { return strings.Contains(name, "/") })
	if changed {
		*names = []string{"request-missing"}
	}
	return changed
}

func stripConstraints(of func(resourceapi.DeviceConstraint) bool) func(*Case) bool {
	return edit(allClaims+"Constraints", func(list *[]resourceapi.DeviceConstraint) bool {
		before := len(*list)
		*list = slices.DeleteFunc(*list, of)
		return len(*list) < before
	})
}

// stripDefault turns a default constraint of a class into a definition that applies only by reference.
func stripDefault(configuration *resourceapi.DeviceConfiguration) bool {
	definition := Definition(*configuration)
	if definition == nil || definition.Enforcement == "" {
		return false
	}
	definition.Enforcement = ""
	*configuration = parametersOf(definition)
	return true
}

// stripList replaces a list attribute by its first element.
func stripList(a *resourceapi.DeviceAttribute) bool {
	before := *a
	switch {
	case len(a.StringValues) > 0:
		*a = stringAttribute(before.StringValues[0])
	case len(a.IntValues) > 0:
		*a = intAttribute(before.IntValues[0])
	case len(a.BoolValues) > 0:
		*a = resourceapi.DeviceAttribute{BoolValue: &before.BoolValues[0]}
	case len(a.VersionValues) > 0:
		*a = resourceapi.DeviceAttribute{VersionValue: &before.VersionValues[0]}
	default:
		return false
	}
	return true
}

// usesLists reports whether a device has a list attribute. An attribute of an unknown type counts as a list.
func usesLists(c *Case) bool {
	return edit(allDevices+".Attributes", func(a *resourceapi.DeviceAttribute) bool {
		return a.StringValue == nil && a.IntValue == nil && a.BoolValue == nil && a.VersionValue == nil
	})(c)
}

func stripSlices(of func(*resourceapi.ResourceSlice) bool) func(*Case) bool {
	return func(c *Case) bool {
		before := len(c.Slices)
		c.Slices = slices.DeleteFunc(c.Slices, of)
		return len(c.Slices) < before
	}
}

// stripSliceNames renames the slices so that their names are sorted in the order of Slices.
func stripSliceNames(c *Case) bool {
	names := make([]string, len(c.Slices))
	for i, slice := range c.Slices {
		names[i] = slice.Name
	}
	changed := !slices.IsSorted(names)
	slices.Sort(names)
	for i, slice := range c.Slices {
		slice.Name = names[i]
	}
	return changed
}

// isElsewhere reports whether only other nodes can use a device. It supports only placements that the generator draws.
func isElsewhere(s *resourceapi.ResourceSlice, d *resourceapi.Device) bool {
	name, all, selector := s.Spec.NodeName, s.Spec.AllNodes, s.Spec.NodeSelector
	if isTrue(s.Spec.PerDeviceNodeSelection) {
		name, all, selector = d.NodeName, d.AllNodes, d.NodeSelector
	}
	if selector == nil {
		return ptr.Deref(name, "") != nodeName && !isTrue(all)
	}
	return !slices.ContainsFunc(selector.NodeSelectorTerms, func(term v1.NodeSelectorTerm) bool {
		return slices.ContainsFunc(term.MatchExpressions, func(r v1.NodeSelectorRequirement) bool {
			return slices.Contains(r.Values, "zone-1")
		})
	})
}

// stripConsumers returns a function that makes allocated devices consume no counters if of returns true for them.
func stripConsumers(of func(*resourceapi.ResourceSlice, *resourceapi.Device) bool) func(*Case) bool {
	return func(c *Case) (changed bool) {
		allocated := slices.Clone(c.Allocated)
		for _, share := range c.Shares {
			allocated = append(allocated, share.Device)
		}
		c.Devices(func(slice *resourceapi.ResourceSlice, d *resourceapi.Device) {
			id := Device{Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: d.Name}
			if of(slice, d) && slices.Contains(allocated, id) && len(d.ConsumesCounters) > 0 {
				d.ConsumesCounters, changed = nil, true
			}
		})
		return changed
	}
}
