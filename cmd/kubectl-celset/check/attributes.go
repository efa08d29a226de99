// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/apis/nearest"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/tree"
	"github.com/celset/celset/internal/clusterstate"
)

// maxPlaces is the maximum number of findings that are reported for one expression.
const maxPlaces = 10

// published counts devices: published[attribute][type] is the number of devices that publish the attribute with the type.
type published map[device.AttributeName]map[string]int

func publishedBy(candidates []candidates) published {
	result := published{}
	for _, one := range distinct(candidates) {
		result.add(one.id.Driver.String(), one.device)
	}
	return result
}

// distinct returns the devices of all nodes. A device that is available on several nodes occurs once.
func distinct(all []candidates) (devices []candidate) {
	seen := sets.New[structured.DeviceID]()
	for _, on := range all {
		for _, one := range on.devices {
			if !seen.Has(one.id) {
				seen.Insert(one.id)
				devices = append(devices, one)
			}
		}
	}
	return devices
}

func (p published) add(driver string, of *resourceapi.Device) {
	for name, value := range of.Attributes {
		name := nameOf(driver, name)
		if p[name] == nil {
			p[name] = map[string]int{}
		}
		p[name][AttributeType(value)]++
	}
}

func nameOf(driver string, name resourceapi.QualifiedName) device.AttributeName {
	domain, id, found := strings.Cut(string(name), "/")
	if !found {
		domain, id = driver, string(name)
	}
	return device.AttributeName{Domain: domain, ID: id}
}

// attribute counts the devices that have the attribute, by type. missing must be the number of all devices; the devices that
// have the attribute are subtracted from it.
func (p published) attribute(name device.AttributeName, missing int) Attribute {
	for _, count := range p[name] {
		missing -= count
	}
	return Attribute{Domain: name.Domain, Name: name.ID, Types: p[name], Missing: max(0, missing)}
}

// nearest returns a suggestion for a misspelt attribute: the most similar published name, from the same domain if possible.
func (p published) nearest(name device.AttributeName) string {
	ids := map[string][]string{}
	for _, of := range slices.SortedFunc(maps.Keys(p), func(a, b device.AttributeName) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.ID, b.ID))
	}) {
		ids[of.Domain] = append(ids[of.Domain], of.ID)
	}
	domain := name.Domain
	if ids[domain] == nil {
		if domain = nearest.Name(domain, slices.Values(slices.Sorted(maps.Keys(ids)))); domain == "" {
			return ""
		}
		if slices.Contains(ids[domain], name.ID) {
			return fmt.Sprintf("; did you mean %q?", domain+"/"+name.ID)
		}
	}
	return nearest.DidYouMean(domain+"/", name.ID, slices.Values(ids[domain]))
}

// attributes finds mistakes in an expression: attributes that no candidate has, and comparisons of types that are never equal.
type attributes struct {
	published
	// drivers lists the drivers of all devices.
	drivers     []string
	preReleases map[device.AttributeName]string
	expression  *device.Expression
	findings
	// refusesLists is set if the feature gate DRAListTypeAttributes is off. stored is set if the slices come from a cluster, so
	// that the API server has accepted them.
	refusesLists, stored bool
	state                *clusterstate.State
	// missing and lists hold the attributes that were reported.
	missing, lists map[device.AttributeName]bool
}

// findings collects the findings about one expression for the report on an object.
type findings struct {
	object *Object
	// where is the location of the definition, name is its name, and text is its expression.
	where, name, text string
	// count is the number of findings, including findings over maxPlaces.
	count int
}

// attributes reports mistakes in the attributes that an expression reads and in comparisons with attributes. has holds the
// published attributes.
func (c *checker) attributes(expression *device.Expression, has published, candidates []candidates, f findings) {
	a := &attributes{
		published: has, drivers: c.nodes.drivers, preReleases: preReleasesOf(candidates), expression: expression, findings: f,
		refusesLists: !c.Features.ListTypeAttributes, stored: c.AllClasses, state: c.state,
		missing: map[device.AttributeName]bool{}, lists: map[device.AttributeName]bool{},
	}
	a.check()
}

func (a *attributes) check() {
	if len(a.published) > 0 {
		// The first pass reports only unguarded reads. So an attribute that is read both guarded and unguarded gets an error,
		// not a warning.
		a.visit(a.expression.AST().Expr(), false, func(expr ast.Expr, guarded bool) { a.read(expr, guarded, false) })
		a.visit(a.expression.AST().Expr(), false, func(expr ast.Expr, guarded bool) {
			a.read(expr, guarded, true)
			a.list(expr)
			a.comparison(expr, guarded)
			a.driver(expr)
			a.preRelease(expr)
		})
	}
}

// visit calls f with each part of expr. guarded is set for a part that may fail, or have an unexpected value, without an effect
// on the whole expression. An example is the right side of "has(x) && x.y".
func (a *attributes) visit(expr ast.Expr, guarded bool, f func(ast.Expr, bool)) {
	f(expr, guarded)
	parts := tree.Parts(expr)
	switch {
	case tree.IsCall(expr, operators.LogicalOr, operators.LogicalAnd):
		for i, part := range parts {
			sibling := parts[1-i]
			// An identifier beside "||" or "&&" is the accumulator that a CEL macro adds, not a condition that guards.
			spares := sibling.Kind() != ast.IdentKind && (tree.IsCall(expr, operators.LogicalOr) || asks(sibling))
			a.visit(part, guarded || spares, f)
		}
	case tree.IsCall(expr, operators.Conditional):
		a.visit(parts[0], guarded, f)
		// In a conditional, each branch is guarded by the condition. The macros filter and exists_one expand to conditionals, too.
		a.visit(parts[1], true, f)
		a.visit(parts[2], true, f)
	case expr.Kind() == ast.ComprehensionKind:
		ofSome := guarded || expr.AsComprehension().IterRange().Kind() == ast.ComprehensionKind
		a.visit(parts[0], guarded, f)
		for _, part := range parts[1:] {
			a.visit(part, ofSome, f)
		}
	default:
		for _, part := range parts {
			a.visit(part, guarded, f)
		}
	}
}

// asks reports whether a condition distinguishes devices by their attributes or driver.
func asks(condition ast.Expr) bool {
	found := false
	tree.Visit(condition, func(part ast.Expr, _ tree.Names) {
		_, isRead, isAttribute := device.NameOf(part)
		found = found || isAttribute && !isRead || tree.IsCall(part, "type") ||
			part.Kind() == ast.SelectKind && (part.AsSelect().IsTestOnly() || part.AsSelect().FieldName() == "driver")
	})
	return found
}

// readsDriver reports whether the expression reads the driver of a device.
func readsDriver(expression *device.Expression) bool {
	found := false
	tree.Visit(expression.AST().Expr(), func(part ast.Expr, _ tree.Names) {
		found = found || part.Kind() == ast.SelectKind && part.AsSelect().FieldName() == "driver"
	})
	return found
}

// read reports expr if it reads an attribute that no device publishes. It reports each attribute once. Unless withGuarded is
// set, it ignores guarded reads.
func (a *attributes) read(expr ast.Expr, guarded, withGuarded bool) {
	name, isRead, ok := device.NameOf(expr)
	guarded = guarded || !isRead
	if !ok || a.published[name] != nil || a.missing[name] || guarded && !withGuarded {
		return
	}
	a.missing[name] = true
	a.report(expr, guarded, fmt.Sprintf("no matching device has the attribute %q%s", name.Domain+"/"+name.ID, a.nearest(name)))
}

// list reports an attribute that is a list if the API server refuses lists. It reports each attribute once. The API server does not
// see the attributes of DeviceAttributes objects in slices.
func (a *attributes) list(expr ast.Expr) {
	name, isRead, ok := device.NameOf(expr)
	if !a.refusesLists || !ok || !isRead || a.lists[name] || a.isAdded(name) {
		return
	}
	for published := range a.published[name] {
		if !strings.HasPrefix(published, "list(") {
			continue
		}
		a.lists[name] = true
		a.report(expr, a.stored, fmt.Sprintf("%q is a list, but the API server rejects lists while the feature gate DRAListTypeAttributes is off: if the gate is on in the cluster, set --feature-gates DRAListTypeAttributes=true",
			name.Domain+"/"+name.ID))
		return
	}
}

// driver warns if expr compares the driver with an unknown name, and some device has a driver with a similar name.
func (a *attributes) driver(expr ast.Expr) {
	if !tree.IsCall(expr, operators.Equals, operators.NotEquals) {
		return
	}
	args := expr.AsCall().Args()
	for i, arg := range args {
		name, ok := tree.Literal[types.String](arg)
		other := args[1-i]
		if !ok || other.Kind() != ast.SelectKind || other.AsSelect().FieldName() != "driver" || slices.Contains(a.drivers, string(name)) {
			continue
		}
		if near := nearest.DidYouMean("", string(name), slices.Values(a.drivers)); near != "" {
			a.report(expr, true, fmt.Sprintf("no device has the driver %q%s", string(name), near))
		}
	}
}

// preRelease warns if expr compares an attribute with a version, and a device publishes a pre-release there. Vendors append
// suffixes to versions. A version with a suffix sorts before the same version without it.
func (a *attributes) preRelease(expr ast.Expr) {
	if !tree.IsCall(expr, "isGreaterThan", "isLessThan", "compareTo") || !expr.AsCall().IsMemberFunction() {
		return
	}
	sides := append(slices.Clone(expr.AsCall().Args()), expr.AsCall().Target())
	if slices.ContainsFunc(sides, isPreRelease) {
		return
	}
	for _, side := range sides {
		name, isRead, ok := device.NameOf(side)
		if text := a.preReleases[name]; ok && isRead && text != "" {
			release, _, _ := strings.Cut(text, "-")
			a.report(expr, true, fmt.Sprintf("%q of a device is %s, which is less than %s: compare with a pre-release such as semver('%s-0')",
				name.Domain+"/"+name.ID, text, release, release))
			return
		}
	}
}

// isPreRelease reports whether an expression is semver() of a literal pre-release. Then no warning is needed, because the
// author uses pre-releases on purpose.
func isPreRelease(expr ast.Expr) bool {
	if !tree.IsCall(expr, "semver") {
		return false
	}
	text, ok := tree.Literal[types.String](expr.AsCall().Args()[0])
	return ok && strings.Contains(string(text), "-")
}

// preReleasesOf returns for each attribute one published version that is a pre-release. Attributes without such a version are
// absent.
func preReleasesOf(candidates []candidates) map[device.AttributeName]string {
	result := map[device.AttributeName]string{}
	for _, on := range candidates {
		for _, one := range on.devices {
			for name, value := range one.device.Attributes {
				if text := ptr.Deref(value.VersionValue, ""); strings.Contains(strings.Split(text, "+")[0], "-") {
					name := nameOf(one.id.Driver.String(), name)
					result[name] = max(result[name], text)
				}
			}
		}
	}
	return result
}

// effects maps operators to the effect of comparing values of different types.
var effects = map[string]string{
	operators.Equals: "== is never true", operators.NotEquals: "!= is always true", operators.In: "in is never true",
	operators.Less: "< fails", operators.LessEquals: "<= fails", operators.Greater: "> fails", operators.GreaterEquals: ">= fails",
}

// comparison reports expr if it compares two sides that have no type in common.
func (a *attributes) comparison(expr ast.Expr, guarded bool) {
	if expr.Kind() != ast.CallKind || effects[expr.AsCall().FunctionName()] == "" || len(expr.AsCall().Args()) != 2 {
		return
	}
	function, args := expr.AsCall().FunctionName(), expr.AsCall().Args()
	left, right := a.side(args[0], false), a.side(args[1], function == operators.In)
	isMap := function == operators.In && a.expression.AST().GetType(args[1].ID()).Kind() == types.MapKind
	if isMap || !left.isAttribute && !right.isAttribute || len(left.types) == 0 || len(right.types) == 0 ||
		slices.ContainsFunc(left.types, func(t string) bool { return slices.Contains(right.types, t) }) {
		return
	}
	effect := effects[function]
	if slices.Contains(right.types, noList) {
		effect = "in needs a list"
	}
	a.report(expr, guarded, fmt.Sprintf("%s, and %s: %s", left.text, right.text, effect))
}

// side is the left or right side of a comparison.
type side struct {
	// types lists the types that the side can have, or is empty if they are unknown. For the list on the right of the operator
	// in, types lists the types of the list's elements.
	types       []string
	text        string
	isAttribute bool
}

func (a *attributes) side(expr ast.Expr, ofElements bool) side {
	if name, isRead, ok := device.NameOf(expr); ok && isRead {
		result := side{isAttribute: true}
		names := slices.Sorted(maps.Keys(a.published[name]))
		for _, t := range names {
			result.types = append(result.types, category(t, ofElements))
		}
		result.text = fmt.Sprintf("%q is %s", name.Domain+"/"+name.ID, strings.Join(names, " or "))
		return result
	}
	t := a.expression.AST().GetType(expr.ID())
	if ofElements {
		if t.Kind() != types.ListKind || len(t.Parameters()) != 1 {
			return side{}
		}
		t = t.Parameters()[0]
	}
	known := ""
	switch t.Kind() {
	case types.IntKind, types.UintKind, types.DoubleKind:
		known = "number"
	case types.StringKind:
		known = "string"
	case types.BoolKind:
		known = "bool"
	case types.ListKind:
		known = "list"
	case types.OpaqueKind, types.StructKind:
		if t.TypeName() == "kubernetes.Semver" {
			known = "version"
		}
	}
	if known == "" {
		return side{}
	}
	return side{types: []string{known}, text: map[bool]string{false: "the other side is a ", true: "elements of the list are of type "}[ofElements] + known}
}

// noList is the category of a value that is not a list, on the right of the operator in.
const noList = "no list"

// category maps a published type to a category, so that only values of the same category can be equal. With ofElements, it
// returns the category of the list's elements.
func category(published string, ofElements bool) string {
	element, isList := strings.CutPrefix(published, "list(")
	switch {
	case isList && !ofElements:
		return "list"
	case !isList && ofElements:
		return noList
	}
	if element = strings.TrimSuffix(element, ")"); element == "int" {
		return "number"
	}
	return element
}

// report adds an error about expr, or a warning if expr is guarded. It drops findings above maxPlaces.
func (a *attributes) report(expr ast.Expr, guarded bool, message string) {
	if a.count++; a.count > maxPlaces {
		return
	}
	at := a.expression.AST().SourceInfo().GetStartLocation(expr.ID())
	found := Finding{Message: fmt.Sprintf("%s: %s: %s", a.where, a.name, message)}
	if at.Line() > 0 {
		found.Line, found.Column = at.Line(), at.Column()+1
		shown := (&common.Error{Location: at}).ToDisplayString(common.NewTextSource(a.text))
		_, place, _ := strings.Cut(shown, "\n")
		found.Message = fmt.Sprintf("%s: %s, line %d, column %d: %s\n%s", a.where, a.name, found.Line, found.Column, message, place)
	}
	if guarded {
		a.object.Warnings = append(a.object.Warnings, found)
	} else {
		a.object.Errors = append(a.object.Errors, found)
	}
}
