// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/ext"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cel/meter"
)

const (
	devicesVariable = "devices"
	deviceVariable  = "device"
	nodesVariable   = "nodes"
	nodeVariable    = "node"

	driverField                   = "driver"
	attributesField               = "attributes"
	capacityField                 = "capacity"
	allowMultipleAllocationsField = "allowMultipleAllocations"
	labelsField                   = "labels"
	devicesField                  = "devices"

	// labelsDomain is the domain of the attributes that are the labels of a node. No driver can use it.
	labelsDomain = "#labels"
)

// AbleLabel is a key that the search for the nodes of a group gives nodes which can take a pod. No node can have it otherwise.
const AbleLabel = "#able"

// MaxLabels is how many labels a node may have: the cost of expressions is bounded by that.
const MaxLabels = 128

const maxLabelKey = validation.DNS1123SubdomainMaxLength + 1 + validation.LabelValueMaxLength

// NodeDriver is the driver of devices that stand for nodes, of which each has one. No real driver may be called so. Attributes
// of this domain are for selectors of nodes, expressions over sets don't see them.
const NodeDriver = "#nodes"

// NodeLabel is the name of the attribute that is a label of a node.
func NodeLabel(key string) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(labelsDomain + "/" + key)
}

// IsSet reports whether a variable of the environment has the set: all others stand for members.
func IsSet(variable string) bool { return variable == devicesVariable || variable == nodesVariable }

// The sizes are the limits of the resource.k8s.io API. They let CEL bound the
// cost of an expression before it is evaluated.
var (
	domainType = sized(apiservercel.StringType, resourceapi.DeviceMaxDomainLength)
	idType     = sized(apiservercel.StringType, resourceapi.DeviceMaxIDLength)
	driverType = sized(apiservercel.StringType, resourceapi.DriverNameMaxLength)
	boolType   = sized(apiservercel.BoolType, 1)
	// The type of an attribute is known at run time only. It is dyn and not any
	// because a list may be iterated over.
	attributeType = sized(apiservercel.DynType,
		max(resourceapi.DeviceAttributeMaxValueLength, resourceapi.ResourceSliceMaxAttributeValuesPerDevice))

	attributesType = byDomain(attributeType)
	capacityType   = byDomain(apiservercel.QuantityDeclType)

	// deviceType has the name and the fields that it has in device selectors.
	deviceType = apiservercel.NewObjectType("kubernetes.DRADevice", map[string]*apiservercel.DeclField{
		driverField:                   field(driverField, driverType),
		attributesField:               field(attributesField, attributesType),
		capacityField:                 field(capacityField, capacityType),
		allowMultipleAllocationsField: field(allowMultipleAllocationsField, boolType),
	})

	// nodeDevicesType are the devices that a pod gets on a node.
	nodeDevicesType = apiservercel.NewListType(deviceType, MaxNodeDevices)

	labelsType = apiservercel.NewMapType(sized(apiservercel.StringType, int64(maxLabelKey)), sized(apiservercel.StringType, int64(validation.LabelValueMaxLength)), MaxLabels)
	nodeType   = apiservercel.NewObjectType("celset.Node", map[string]*apiservercel.DeclField{
		labelsField:     field(labelsField, labelsType),
		attributesField: field(attributesField, attributesType),
		capacityField:   field(capacityField, capacityType),
		devicesField:    field(devicesField, nodeDevicesType),
	})
)

func sized(t *apiservercel.DeclType, elements int64) *apiservercel.DeclType {
	result := *t
	result.MaxElements = elements
	return &result
}

func byDomain(value *apiservercel.DeclType) *apiservercel.DeclType {
	const entries = resourceapi.ResourceSliceMaxAttributesAndCapacitiesPerDevice
	return apiservercel.NewMapType(domainType, apiservercel.NewMapType(idType, value, entries), entries)
}

func field(name string, t *apiservercel.DeclType) *apiservercel.DeclField {
	return apiservercel.NewDeclField(name, t, true, nil, nil)
}

// Environment compiles expressions over "devices". It is safe for concurrent
// use.
type Environment struct {
	core *cel.Environment
	// set is the variable.
	set string
}

// NewEnvironment returns an environment with the limits and the observer of
// config; name, types and options are set here.
func NewEnvironment(config cel.Config) (*Environment, error) {
	return newEnvironment(config, devicesVariable, deviceVariable, deviceType)
}

// NewNodeEnvironment is NewEnvironment for expressions over "nodes". An element has labels, attributes and capacity as a
// device has, and devices. It is a [Device] of the driver [NodeDriver].
func NewNodeEnvironment(config cel.Config) (*Environment, error) {
	return newEnvironment(config, nodesVariable, nodeVariable, nodeType)
}

func newEnvironment(config cel.Config, set, member string, of *apiservercel.DeclType) (*Environment, error) {
	config.Name = set
	config.Types = []*apiservercel.DeclType{of}
	config.Element = cel.Element{Name: member, Type: of.CelType(), List: set}
	config.Options = append(library.Options(),
		celgo.Variable(set, celgo.ListType(of.CelType())),
		// cel.bind, as in device selectors.
		ext.Bindings(ext.BindingsVersion(0)),
		// Conjuncts are written as they were.
		celgo.EnableMacroCallTracking(),
		celgo.ASTValidators(nameValidator{}),
	)
	config.Options = append(config.Options, mathematics()...)
	core, err := cel.NewEnvironment(config)
	if err != nil {
		return nil, err
	}
	return &Environment{core, set}, nil
}

// NewSelectorEnvironment returns an environment for what device selectors say of one
// "device", to judge them before upstream's evaluator gets them: what it compiles is not to be
// evaluated.
func NewSelectorEnvironment(config cel.Config) (*Environment, error) {
	config.Name = "selectors"
	config.Types = []*apiservercel.DeclType{deviceType}
	config.Options = []celgo.EnvOption{
		celgo.Variable(deviceVariable, deviceType.CelType()),
		ext.Bindings(ext.BindingsVersion(0)),
	}
	core, err := cel.NewEnvironment(config)
	if err != nil {
		return nil, err
	}
	return &Environment{core, ""}, nil
}

// Functions returns the declarations of all functions and operators, by name.
func (e *Environment) Functions() map[string]*decls.FunctionDecl { return e.core.Functions() }

// Compile returns the expression ready to be evaluated. It reads the variables of a device d
// as d.variables.<name>; in them it is "device", as in a device selector. The error is a
// [*cel.Error].
func (e *Environment) Compile(ctx context.Context, expression string, variables ...v1alpha1.Variable) (*Expression, error) {
	return e.compiled(e.core.Compile(ctx, expression, ofCore(variables)...))
}

// CompileInt is Compile for an expression of type int, whose value is [Expression.Value].
func (e *Environment) CompileInt(ctx context.Context, expression string, variables ...v1alpha1.Variable) (*Expression, error) {
	return e.compiled(e.core.CompileInt(ctx, expression, ofCore(variables)...))
}

// CompileAny is Compile for an expression of any type, which is not evaluated.
func (e *Environment) CompileAny(ctx context.Context, expression string) (*Expression, error) {
	return e.compiled(e.core.CompileAny(ctx, expression))
}

func (e *Environment) compiled(program *cel.Program, err error) (*Expression, error) {
	if err != nil {
		return nil, err
	}
	return &Expression{program, e.set}, nil
}

func ofCore(variables []v1alpha1.Variable) []cel.Variable {
	of := make([]cel.Variable, 0, len(variables))
	for _, v := range variables {
		of = append(of, cel.Variable(v))
	}
	return of
}

// Expression is a compiled expression over "devices". It is safe for concurrent
// use. Two of them are equal (==, on the values) if they are one compilation: an
// Environment compiles a text once, as long as it remembers it.
type Expression struct {
	program *cel.Program
	// set is the variable that the set is in.
	set string
}

// Satisfied returns the verdict on a set of devices, given in the order in
// which the expression sees them, and charges the budget. Anything but true and
// false is an error, always a [*cel.Error].
func (e *Expression) Satisfied(ctx context.Context, devices []*Device, budget *cel.Budget) (bool, error) {
	input := inputOf(devices)
	defer input.release()
	return e.program.Evaluate(ctx, input, budget)
}

// Value is Satisfied for an expression of [Environment.CompileInt]: anything but an int is an
// error.
func (e *Expression) Value(ctx context.Context, devices []*Device, budget *cel.Budget) (int64, error) {
	input := inputOf(devices)
	defer input.release()
	return e.program.EvaluateInt(ctx, input, budget)
}

// OutputType names the type of the result as far as it is known before an evaluation:
// bool or int, or dyn if it may still turn out to be one.
func (e *Expression) OutputType() string { return e.program.OutputType().String() }

// CostLimit is what one evaluation may cost, in CEL cost units.
func (e *Expression) CostLimit() uint64 { return e.program.CostLimit() }

// Limits are those of one evaluation.
func (e *Expression) Limits() meter.Limits { return e.program.Limits() }

// Size is about how many bytes of memory the compiled expression takes.
func (e *Expression) Size() int { return e.program.Size() }
