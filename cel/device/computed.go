// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"fmt"
	"slices"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
	resourceapi "k8s.io/api/resource/v1"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/tree"
)

const nameField = "name"

var (
	// namedDeviceType is the device type of selectors, and the name of the device.
	namedDeviceType = apiservercel.NewObjectType("celset.NamedDevice", map[string]*apiservercel.DeclField{
		nameField:                     field(nameField, sized(apiservercel.StringType, resourceapi.DeviceMaxDomainLength)),
		driverField:                   field(driverField, driverType),
		attributesField:               field(attributesField, attributesType),
		capacityField:                 field(capacityField, capacityType),
		allowMultipleAllocationsField: field(allowMultipleAllocationsField, boolType),
	})
	// labelledNodeType is a node without devices.
	labelledNodeType = apiservercel.NewObjectType("celset.LabelledNode", map[string]*apiservercel.DeclField{
		nameField:   field(nameField, sized(apiservercel.StringType, int64(resourceapi.PoolNameMaxLength))),
		labelsField: field(labelsField, labelsType),
	})
)

// A ComputedEnvironment compiles expressions that compute an attribute of one device. It is safe for concurrent use.
type ComputedEnvironment struct{ core *cel.Environment }

// NewComputedEnvironment returns an environment with the variables "device" and "node". The variable "device" has the fields of
// a device selector and the field name. The variable "node" has the fields name and labels.
func NewComputedEnvironment(config cel.Config) (*ComputedEnvironment, error) {
	config.Name = "attributes"
	config.Types = []*apiservercel.DeclType{namedDeviceType, labelledNodeType}
	config.Options = []celgo.EnvOption{
		celgo.Variable(deviceVariable, namedDeviceType.CelType()),
		celgo.Variable(nodeVariable, labelledNodeType.CelType()),
		ext.Bindings(ext.BindingsVersion(0)),
		celgo.ASTValidators(nameValidator{}),
	}
	config.Options = append(config.Options, mathematics()...)
	core, err := cel.NewEnvironment(config)
	if err != nil {
		return nil, err
	}
	return &ComputedEnvironment{core}, nil
}

// Compile returns the expression ready for evaluation. The error is a [*cel.Error], or the error of the context.
func (e *ComputedEnvironment) Compile(ctx context.Context, expression string) (*Computed, error) {
	program, err := e.core.CompileAny(ctx, expression)
	if err != nil {
		return nil, err
	}
	if !canBeAttribute(program.OutputType()) {
		return nil, &cel.Error{
			Reason: cel.ReasonType, Expression: expression,
			Message: fmt.Sprintf("the expression must return an int, a bool, a string, a semver or a list of one of these types, but returns %s", program.OutputType()),
		}
	}
	labels, all := labelsRead(program.AST())
	return &Computed{program: program, labels: labels, allLabels: all}, nil
}

// canBeAttribute reports whether a value of the static type may be the value of an attribute.
func canBeAttribute(t *celgo.Type) bool {
	if t.TypeName() == types.OptionalType.TypeName() && len(t.Parameters()) == 1 {
		return canBeAttribute(t.Parameters()[0])
	}
	if t.Kind() == types.ListKind {
		t = t.Parameters()[0]
	}
	switch t.Kind() {
	case types.IntKind, types.BoolKind, types.StringKind, types.DynKind, types.AnyKind:
		return true
	default:
		return t.TypeName() == apiservercel.SemverType.TypeName()
	}
}

// A Computed is a compiled expression that computes an attribute. It is safe for concurrent use.
type Computed struct {
	program *cel.Program
	// labels are the keys of the labels that the expression names. allLabels is set if it reads the labels in another way.
	labels    []string
	allLabels bool
}

// Labels returns the keys of the node labels that the expression reads. If all is true, the expression may read every label.
func (c *Computed) Labels() (keys []string, all bool) { return c.labels, c.allLabels }

// Evaluate returns the value for a device, or nil if the expression returns optional.none(). The value is not validated, except
// that its type is possible for an attribute. Every error is a [*cel.Error].
func (c *Computed) Evaluate(ctx context.Context, of *ComputedInput, budget *cel.Budget) (*resourceapi.DeviceAttribute, error) {
	value, err := c.program.EvaluateAny(ctx, of, budget)
	if err != nil {
		return nil, err
	}
	if optional, ok := value.(*types.Optional); ok {
		if !optional.HasValue() {
			return nil, nil
		}
		value = optional.GetValue()
	}
	attribute, ok := attributeOf(value)
	if !ok {
		return nil, &cel.Error{
			Reason: cel.ReasonType, Expression: c.program.Expression(),
			Message: "the expression must return an int, a bool, a string, a semver or a list of one of these types, but returned " + shownType(value),
		}
	}
	return attribute, nil
}

func shownType(value ref.Val) string {
	if list, ok := value.(traits.Lister); ok {
		if list.Size() == types.IntZero {
			return "an empty list"
		}
		return "a list of other or of different types"
	}
	return value.Type().TypeName()
}

// attributeOf converts a value. ok is false if no attribute can have the value.
func attributeOf(value ref.Val) (attribute *resourceapi.DeviceAttribute, ok bool) {
	switch value := value.(type) {
	case types.Int:
		return &resourceapi.DeviceAttribute{IntValue: new(int64(value))}, true
	case types.Bool:
		return &resourceapi.DeviceAttribute{BoolValue: new(bool(value))}, true
	case types.String:
		return &resourceapi.DeviceAttribute{StringValue: new(string(value))}, true
	case apiservercel.Semver:
		return &resourceapi.DeviceAttribute{VersionValue: new(value.String())}, true
	case traits.Lister:
		return listOf(value)
	default:
		return nil, false
	}
}

// listOf converts a list whose elements have one type. An attribute can't have an empty list.
func listOf(list traits.Lister) (attribute *resourceapi.DeviceAttribute, ok bool) {
	result := &resourceapi.DeviceAttribute{}
	elements := 0
	for it := list.Iterator(); it.HasNext() == types.True; elements++ {
		switch element := it.Next().(type) {
		case types.Int:
			result.IntValues = append(result.IntValues, int64(element))
		case types.Bool:
			result.BoolValues = append(result.BoolValues, bool(element))
		case types.String:
			result.StringValues = append(result.StringValues, string(element))
		case apiservercel.Semver:
			result.VersionValues = append(result.VersionValues, element.String())
		default:
			return nil, false
		}
	}
	most := max(len(result.IntValues), len(result.BoolValues), len(result.StringValues), len(result.VersionValues))
	return result, elements > 0 && most == elements
}

// A ComputedNode is a node as a CEL value. It is shared by the devices of the node.
type ComputedNode struct{ value ref.Val }

// NewComputedNode returns a node. A device without a node has a ComputedNode with neither name nor labels.
func NewComputedNode(name string, labels map[string]string) *ComputedNode {
	values := make(map[string]ref.Val, len(labels))
	for key, value := range labels {
		values[key] = types.String(value)
	}
	return &ComputedNode{types.NewStringInterfaceMap(types.DefaultTypeAdapter, map[string]any{
		nameField: types.String(name), labelsField: newOrderedMap(values),
	})}
}

// A ComputedInput is a device and its node, the variables of an expression. Attributes are converted on first access. It is safe
// for concurrent use.
type ComputedInput struct{ device, node ref.Val }

// NewComputedInput returns the input for a device of a driver. The caller must not modify the device afterwards.
func NewComputedInput(driver string, of *resourceapi.Device, node *ComputedNode) *ComputedInput {
	return &ComputedInput{namedDevice{New(driver, of), of.Name}, node.value}
}

// ResolveName implements [celgo.Activation].
func (i *ComputedInput) ResolveName(name string) (any, bool) {
	switch name {
	case deviceVariable:
		return i.device, true
	case nodeVariable:
		return i.node, true
	default:
		return nil, false
	}
}

// Parent implements [celgo.Activation].
func (i *ComputedInput) Parent() celgo.Activation { return nil }

// namedDevice is a device with its name.
type namedDevice struct {
	*Device
	name string
}

// Get returns a field, as a CEL selection does.
func (d namedDevice) Get(name ref.Val) ref.Val {
	if name == types.String(nameField) {
		return types.String(d.name)
	}
	return d.Device.Get(name)
}

// IsSet implements CEL's has.
func (d namedDevice) IsSet(name ref.Val) ref.Val {
	if name == types.String(nameField) {
		return types.True
	}
	return d.Device.IsSet(name)
}

// Equal compares identities.
func (d namedDevice) Equal(other ref.Val) ref.Val {
	same, ok := other.(namedDevice)
	return types.Bool(ok && same.Device == d.Device)
}

// ConvertToType supports type(device) only.
func (d namedDevice) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return namedDeviceType.CelType()
	}
	return d.Device.ConvertToType(t)
}

// Type returns the type of the variable.
func (d namedDevice) Type() ref.Type { return namedDeviceType.CelType() }

// Value returns the device itself.
func (d namedDevice) Value() any { return d }

// labelsRead returns the label keys that an expression names. all is set if the expression uses the node or its labels without a
// constant key.
func labelsRead(checked *ast.AST) (keys []string, all bool) {
	uses, named := 0, 0
	tree.Visit(checked.Expr(), func(part ast.Expr, _ tree.Names) {
		if part.Kind() == ast.IdentKind && part.AsIdent() == nodeVariable {
			uses++
		}
		if isNodeField(part, nameField) {
			named++
			return
		}
		member, ok := tree.MemberOf(part)
		if !ok {
			member, ok = tested(part)
		}
		if ok && member.Known && isNodeField(member.Container, labelsField) {
			named++
			keys = append(keys, member.Name)
		}
	})
	slices.Sort(keys)
	return slices.Compact(keys), named < uses
}

// isNodeField reports whether an expression is the field of the variable node.
func isNodeField(expr ast.Expr, name string) bool {
	if expr.Kind() != ast.SelectKind || expr.AsSelect().IsTestOnly() || expr.AsSelect().FieldName() != name {
		return false
	}
	of := expr.AsSelect().Operand()
	return of.Kind() == ast.IdentKind && of.AsIdent() == nodeVariable
}
