// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cmd/kubectl-celset/check"
)

// setFunctions describes the functions over sets of package library, and the macros of CEL.
var setFunctions = []Completion{
	{Label: "connected", Detail: "devices.connected(a, b, joined)", Info: "Every device can be reached from every other one by steps between joined devices.", Apply: "connected("},
	{Label: "clique", Detail: "devices.clique(a, b, joined)", Info: "Any two devices are joined.", Apply: "clique("},
	{Label: "ring", Detail: "devices.ring(a, b, joined)", Info: "The devices can be arranged in a circle so that each device is joined to the next one.", Apply: "ring("},
	{Label: "path", Detail: "devices.path(a, b, joined)", Info: "The devices can be arranged in a row so that each device is joined to the next one.", Apply: "path("},
	{Label: "box", Detail: "devices.box(d, [x, y], [2, 4])", Info: "The sides of the bounding box have these lengths, in any order.", Apply: "box("},
	{Label: "paired", Detail: "list.paired(other, a, b, joined)", Info: "Each device can get a joined partner in the other list, and no two devices share a partner.", Apply: "paired("},
	{Label: "segments", Detail: "devices.segments(8, d, key)", Info: "The devices can be divided into segments of this size, and all devices of a segment have the same key.", Apply: "segments("},
	{Label: "sameOrIncludes", Detail: "x.sameOrIncludes(y)", Info: "The two values are equal, or one is a list with the other, or both are lists with a common element.", Apply: "sameOrIncludes("},
	{Label: "all", Detail: "list.all(d, condition)", Info: "The condition is true for all elements.", Apply: "all("},
	{Label: "exists", Detail: "list.exists(d, condition)", Info: "The condition is true for an element.", Apply: "exists("},
	{Label: "exists_one", Detail: "list.exists_one(d, condition)", Info: "The condition is true for exactly one element.", Apply: "exists_one("},
	{Label: "map", Detail: "list.map(d, value)", Info: "The list of the values.", Apply: "map("},
	{Label: "filter", Detail: "list.filter(d, condition)", Info: "The list of the elements with this condition.", Apply: "filter("},
	{Label: "sortBy", Detail: "list.sortBy(d, key)", Info: "The list in the order of the keys.", Apply: "sortBy("},
}

// deviceMembers describes the fields of a device.
var deviceMembers = []Completion{
	{Label: "attributes", Detail: "map of maps", Info: "The first key is the domain, and the second key is the name.", Apply: "attributes['"},
	{Label: "capacity", Detail: "map of maps of quantities", Info: "The first key is the domain, and the second key is the name.", Apply: "capacity['"},
	{Label: "driver", Detail: "string"},
	{Label: "allowMultipleAllocations", Detail: "bool"},
	{Label: "variables", Detail: "map", Info: "The values of the variables of the definition."},
}

// functions are the functions of the environment of device constraints. The first list has functions that are called on a value.
var functions = sync.OnceValues(func() (members, globals []Completion) {
	environment, err := device.NewEnvironment(cel.Config{})
	if err != nil {
		return nil, nil
	}
	for name, function := range environment.Functions() {
		if strings.ContainsAny(name, "@_") {
			continue // operators and helpers of macros
		}
		for _, overload := range function.OverloadDecls() {
			option := Completion{Label: name, Detail: "function", Apply: name + "("}
			if overload.IsMemberFunction() {
				members = append(members, option)
			} else {
				globals = append(globals, option)
			}
		}
	}
	return members, globals
})

// inMap matches the end of an expression that reads a map of a device: with the domain and a beginning of the name, or with a
// beginning of the domain.
var (
	inDomain = regexp.MustCompile(`(attributes|capacity)\[["']([^"']*)["']\]\.\??(\w*)$`)
	inMap    = regexp.MustCompile(`(attributes|capacity)\[["']([^"'\]]*)$`)
)

// expressionOptions returns the completions at the end of an expression, and the word that they complete.
func expressionOptions(at *cursor, known *names) (word string, options []Completion) {
	if found := inDomain.FindStringSubmatch(at.value); found != nil {
		for _, name := range qualifiedNames(known, found[1]) {
			if name.domain == found[2] {
				options = append(options, Completion{Label: name.id, Detail: name.kind})
			}
		}
		return found[3], options
	}
	if found := inMap.FindStringSubmatch(at.value); found != nil {
		for _, name := range qualifiedNames(known, found[1]) {
			options = append(options, Completion{Label: name.domain, Detail: "domain", Apply: name.domain + "']"})
		}
		return found[2], options
	}
	word = lastWord(at.value)
	members, globals := functions()
	before := strings.TrimSuffix(at.value, word)
	if strings.HasSuffix(before, ".") {
		return word, slices.Concat(deviceMembers, setFunctions, members)
	}
	set := Completion{Label: "devices", Detail: "list of devices", Info: "The devices of the covered requests."}
	switch {
	case slices.Contains(at.path, "selectors"), slices.Contains(at.path, "variables"), slices.Contains(at.path, "attributes"):
		set = Completion{Label: "device", Detail: "device"}
	case slices.Contains(at.path, "celExpressions"):
		set = Completion{Label: "managedCluster", Detail: "ManagedCluster"}
	}
	return word, append(slices.Clone(globals), set)
}

// qualified is the name of an attribute or a capacity.
type qualified struct{ domain, id, kind string }

// qualifiedNames returns the names of the attributes, or of the capacities, of the known devices.
func qualifiedNames(known *names, of string) []qualified {
	seen := map[qualified]bool{}
	var result []qualified
	add := func(driver, name, kind string) {
		domain, id, ok := strings.Cut(name, "/")
		if !ok {
			domain, id = driver, name
		}
		if one := (qualified{domain, id, kind}); !seen[one] {
			seen[one] = true
			result = append(result, one)
		}
	}
	for _, slice := range known.slices {
		for i := range slice.Spec.Devices {
			if of == "capacity" {
				for name := range slice.Spec.Devices[i].Capacity {
					add(slice.Spec.Driver, string(name), "quantity")
				}
				continue
			}
			for name, value := range slice.Spec.Devices[i].Attributes {
				add(slice.Spec.Driver, string(name), check.AttributeType(value))
			}
		}
	}
	return result
}

// attributeOptions returns the qualified names of attributes.
func attributeOptions(known *names) (result []Completion) {
	for _, name := range qualifiedNames(known, "attributes") {
		result = append(result, Completion{Label: name.domain + "/" + name.id, Detail: name.kind})
	}
	return result
}

func driversOf(known *names) (drivers []string) {
	for _, slice := range known.slices {
		drivers = append(drivers, slice.Spec.Driver)
	}
	return drivers
}
