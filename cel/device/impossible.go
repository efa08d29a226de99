// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/celset/celset/cel/tree"
)

// An ImpossibleName is a lookup of a name that no device and no node can have, because the API server rejects the name. The
// expression compiles, because names are map keys. Such a lookup is a trap: all devices have the same empty map for an
// impossible domain, so an expression that compares these maps holds for every set.
type ImpossibleName struct {
	// ID is the ID of the lookup in the syntax tree.
	ID int64
	// Message states the problem and the corrected lookup.
	Message string
}

// ImpossibleNames returns the lookups in an expression with names that no device and no node can have: domains and names of
// attributes and capacities, and label keys. The expression may be checked or only parsed. Names that are computed from
// constants are found, too.
func ImpossibleNames(checked *ast.AST) []ImpossibleName {
	f := &impossibleNames{checked: checked, texts: tree.Scope[[]string]{}}
	tree.Visit(checked.Expr(), func(part ast.Expr, _ tree.Names) {
		f.makesMaps = f.makesMaps || part.Kind() == ast.MapKind && part.AsMap().Size() > 0 || tree.IsCall(part, "cel.@mapInsert")
	})
	f.visit(checked.Expr())
	return f.found
}

// nameValidator rejects expressions with impossible names.
type nameValidator struct{}

// Name implements the validator interface.
func (nameValidator) Name() string { return "celset.validator.names" }

// Untyped marks the validator as one that also runs on expressions with type errors. A wrong lookup that returns a map instead
// of a value is usually a type error.
func (nameValidator) Untyped() {}

// Validate reports each impossible name as an issue at its position.
func (nameValidator) Validate(_ *celgo.Env, _ celgo.ValidatorConfig, checked *ast.AST, issues *celgo.Issues) {
	for _, name := range ImpossibleNames(checked) {
		issues.ReportErrorAtID(name.ID, "%s", name.Message)
	}
}

// impossibleNames collects the impossible names during one walk through an expression.
type impossibleNames struct {
	checked *ast.AST
	// texts maps a loop variable, or a variable of cel.bind, to the constant texts that it can hold.
	texts tree.Scope[[]string]
	// makesMaps is true if the expression builds maps. Then a map of maps may be something else than the attributes of a
	// device.
	makesMaps bool
	found     []ImpossibleName
}

func (f *impossibleNames) visit(expr ast.Expr) {
	f.lookUp(expr)
	if name, value, body, ok := tree.BindingOf(expr); ok {
		f.visit(value)
		f.texts.Declare(name, f.constants(value))
		f.visit(body)
		f.texts.Forget(name)
		return
	}
	if expr.Kind() != ast.ComprehensionKind {
		for _, part := range tree.Parts(expr) {
			f.visit(part)
		}
		return
	}
	c := expr.AsComprehension()
	f.visit(c.IterRange())
	f.visit(c.AccuInit())
	f.texts.Declare(c.AccuVar(), nil)
	for _, name := range tree.IterVars(c) {
		f.texts.Declare(name, nil)
	}
	f.texts.Declare(tree.ElementVar(c), f.elements(c.IterRange()))
	f.visit(c.LoopCondition())
	f.visit(c.LoopStep())
	f.texts.Forget(append(tree.IterVars(c), tree.ElementVar(c))...)
	f.visit(c.Result())
	f.texts.Forget(c.AccuVar())
}

// Each cel.bind can double the text of a variable. So texts and lists beyond these limits count as not constant.
const (
	maxConstantText  = 1024
	maxConstantTexts = 64
)

// elements returns the texts in a list of constants.
func (f *impossibleNames) elements(list ast.Expr) []string {
	var texts []string
	if list.Kind() == ast.ListKind {
		for _, element := range list.AsList().Elements() {
			if texts = append(texts, f.constants(element)...); len(texts) > maxConstantTexts {
				return nil
			}
		}
	}
	return texts
}

// constants returns all texts that an expression may have as value, or nil if the value is not constant.
func (f *impossibleNames) constants(expr ast.Expr) []string {
	if text, ok := tree.Literal[types.String](expr); ok {
		return []string{string(text)}
	}
	if expr.Kind() == ast.IdentKind {
		texts, _ := f.texts.Lookup(expr.AsIdent())
		return texts
	}
	if !tree.IsCall(expr, operators.Add) {
		return nil
	}
	left, right := f.constants(expr.AsCall().Args()[0]), f.constants(expr.AsCall().Args()[1])
	if len(left) != 1 || len(right) != 1 || len(left[0])+len(right[0]) > maxConstantText {
		return nil
	}
	return []string{left[0] + right[0]}
}

// lookUp records an impossible name if expr looks up a key.
func (f *impossibleNames) lookUp(expr ast.Expr) {
	var container, at ast.Expr
	var keys []string
	switch {
	case expr.Kind() == ast.SelectKind:
		container, at, keys = expr.AsSelect().Operand(), expr, []string{expr.AsSelect().FieldName()}
	case tree.IsCall(expr, operators.Index, operators.OptIndex, operators.OptSelect):
		args := expr.AsCall().Args()
		container, at, keys = args[0], args[1], f.constants(args[1])
	case tree.IsCall(expr, operators.In):
		args := expr.AsCall().Args()
		container, at, keys = args[1], args[0], f.constants(args[0])
	default:
		return
	}
	if len(keys) == 0 {
		return
	}
	is := f.keysOf(container)
	for _, key := range keys {
		if message := is.wrong(key, lookUpOf(expr, container)); message != "" {
			f.found = append(f.found, ImpossibleName{at.ID(), message})
			return
		}
	}
}

// keyKind says which names are the keys of a map.
type keyKind int

const (
	otherKeys keyKind = iota
	domainKeys
	idKeys
	labelKeys
)

// keysOf returns the kind of the keys of a map, judged by the map's type. Only devices and nodes have maps of these types,
// unless the expression builds maps. If the type is dyn, keysOf judges by the field name.
func (f *impossibleNames) keysOf(container ast.Expr) keyKind {
	t := f.typeOf(container)
	if t.Kind() == types.DynKind && !f.makesMaps {
		return untypedKeys(container)
	}
	if t.Kind() != types.MapKind || f.makesMaps && !f.isOfMember(container) {
		return otherKeys
	}
	switch value := t.Parameters()[1]; value.Kind() {
	case types.MapKind:
		return domainKeys
	case types.StringKind:
		return labelKeys
	case types.ListKind:
		return otherKeys // the parameters of a URL
	default:
		return idKeys
	}
}

func untypedKeys(container ast.Expr) keyKind {
	if isField(container, attributesField, capacityField) {
		return domainKeys
	}
	if isField(container, labelsField) {
		return labelKeys
	}
	if domain, ok := tree.MemberOf(container); ok && isField(domain.Container, attributesField, capacityField) {
		return idKeys
	}
	return otherKeys
}

func isField(expr ast.Expr, names ...string) bool {
	return expr.Kind() == ast.SelectKind && !expr.AsSelect().IsTestOnly() && slices.Contains(names, expr.AsSelect().FieldName())
}

// isOfMember reports whether an expression is d.attributes, d.capacity or d.labels, or is one domain of d.attributes or
// d.capacity.
func (f *impossibleNames) isOfMember(expr ast.Expr) bool {
	member, ok := tree.MemberOf(expr)
	if !ok {
		return false
	}
	if f.typeOf(member.Container).Kind() == types.StructKind {
		return true
	}
	domain, ok := tree.MemberOf(member.Container)
	return ok && f.typeOf(domain.Container).Kind() == types.StructKind
}

// typeOf returns the type of a subexpression. For an optional value it returns the type of the value inside.
func (f *impossibleNames) typeOf(expr ast.Expr) *types.Type {
	t := f.checked.GetType(expr.ID())
	if t.TypeName() == types.OptionalType.TypeName() && len(t.Parameters()) == 1 {
		return t.Parameters()[0]
	}
	return t
}

// writtenLookUp formats the corrected lookup for an error message.
type writtenLookUp struct {
	// of is the text of the map of domains, such as d.attributes.
	of     string
	isTest bool
}

func lookUpOf(expr, container ast.Expr) writtenLookUp {
	of := container
	if member, ok := tree.MemberOf(container); ok && container.Kind() != ast.SelectKind {
		of = member.Container
	}
	// In the definition of a variable, "@element" is the compiler's name for "device".
	text := strings.ReplaceAll(tree.QualifiedName(of), "@element", deviceVariable)
	if text == "" {
		text = "d." + cmp.Or(fieldOf(of), attributesField)
	}
	return writtenLookUp{text, tree.IsCall(expr, operators.In)}
}

func (w writtenLookUp) attribute(domain, id string) string {
	if w.isTest {
		return fmt.Sprintf("'%s' in %s['%s']", id, w.of, domain)
	}
	return fmt.Sprintf("%s['%s'].%s", w.of, domain, id)
}

// wrong returns an error message if the key is impossible, and "" if the key is possible.
func (k keyKind) wrong(key string, written writtenLookUp) string {
	domain, id, isQualified := strings.Cut(key, "/")
	isQualified = isQualified && isDomain(domain) && isID(id)
	switch {
	case k == domainKeys && isQualified:
		return fmt.Sprintf("no device can have the domain %q, a domain has no slash: write %s", key, written.attribute(domain, id))
	case k == domainKeys && !isDomain(key):
		return fmt.Sprintf("no device can have the domain %q: a domain is a DNS subdomain of at most %d characters, such as gpu.example.com", key, resourceapi.DeviceMaxDomainLength)
	case k == idKeys && isQualified:
		return fmt.Sprintf("no device can have the name %q in a domain, a name has no slash: write %s", key, written.attribute(domain, id))
	case k == idKeys && !isID(key):
		return fmt.Sprintf("no device can have the name %q in a domain: a name is a C identifier of at most %d characters, such as memory_size", key, resourceapi.DeviceMaxIDLength)
	case k == labelKeys && key != AbleLabel && len(validation.IsQualifiedName(key)) > 0:
		return fmt.Sprintf("no node can have the label %q: a label key has letters, digits, '-', '_' and '.', optionally after a DNS subdomain and a slash", key)
	default:
		return ""
	}
}

// isDomain reports whether a text is a valid driver or domain. It allows upper case, as the API server does.
func isDomain(text string) bool {
	return len(text) <= resourceapi.DeviceMaxDomainLength && len(validation.IsDNS1123Subdomain(strings.ToLower(text))) == 0
}

func isID(text string) bool {
	return len(text) <= resourceapi.DeviceMaxIDLength && len(validation.IsCIdentifier(text)) == 0
}
