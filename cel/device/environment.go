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
	podField                      = "pod"
	podsField                     = "pods"
	indexField                    = "index"

	// labelsDomain is the attribute domain that holds the labels of a node. No driver can use this domain.
	labelsDomain = "#labels"
)

// AbleLabel is a label that the search for the nodes of a group sets on nodes that can take a pod. It can't collide with a real
// label, because it is not a valid label key.
const AbleLabel = "#able"

// MaxLabels is the maximum number of labels of a node, if the expression reads all labels. Cost bounds depend on this limit.
const MaxLabels = 128

const maxLabelKey = validation.DNS1123SubdomainMaxLength + 1 + validation.LabelValueMaxLength

// NodeDriver is the driver of the devices that represent nodes, one device per node. It is not a valid driver name. The
// attributes of its domain are for selectors of nodes. Expressions over sets can't read them.
const NodeDriver = "#nodes"

// NodeLabel returns the name of the attribute that holds a label of a node.
func NodeLabel(key string) resourceapi.QualifiedName {
	return resourceapi.QualifiedName(labelsDomain + "/" + key)
}

// IsSet reports whether a variable is the whole set, "devices" or "nodes". Each other variable is a single device or node.
func IsSet(variable string) bool { return variable == devicesVariable || variable == nodesVariable }

// The sizes in these types are the limits of the resource.k8s.io API. CEL uses them to bound the cost of an expression.
var (
	domainType = sized(apiservercel.StringType, resourceapi.DeviceMaxDomainLength)
	idType     = sized(apiservercel.StringType, resourceapi.DeviceMaxIDLength)
	driverType = sized(apiservercel.StringType, resourceapi.DriverNameMaxLength)
	boolType   = sized(apiservercel.BoolType, 1)
	// The type of an attribute is only known at run time. It is dyn instead of any, so that expressions can iterate over an
	// attribute.
	attributeType = sized(apiservercel.DynType,
		max(resourceapi.DeviceAttributeMaxValueLength, resourceapi.ResourceSliceMaxAttributeValuesPerDevice))

	attributesType = byDomain(attributeType)
	capacityType   = byDomain(apiservercel.QuantityDeclType)

	// deviceType has the name and the fields of the type of "device" in device selectors.
	deviceType = apiservercel.NewObjectType("kubernetes.DRADevice", map[string]*apiservercel.DeclField{
		driverField:                   field(driverField, driverType),
		attributesField:               field(attributesField, attributesType),
		capacityField:                 field(capacityField, capacityType),
		allowMultipleAllocationsField: field(allowMultipleAllocationsField, boolType),
	})

	// nodeDevicesType is the list of devices that a pod gets on a node.
	nodeDevicesType = apiservercel.NewListType(deviceType, MaxNodeDevices)

	labelsType = apiservercel.NewMapType(sized(apiservercel.StringType, int64(maxLabelKey)), sized(apiservercel.StringType, int64(validation.LabelValueMaxLength)), MaxLabels)
	nodeType   = apiservercel.NewObjectType("celset.Node", map[string]*apiservercel.DeclField{
		labelsField:     field(labelsField, labelsType),
		attributesField: field(attributesField, attributesType),
		capacityField:   field(capacityField, capacityType),
		devicesField:    field(devicesField, nodeDevicesType),
		podField:        field(podField, podType),
		podsField:       field(podsField, nodePodsType),
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

// Environment compiles expressions over "devices" or "nodes". It is safe for concurrent use.
type Environment struct {
	core *cel.Environment
	// set is the name of the set variable. It is empty for device selectors.
	set string
}

// NewEnvironment returns an environment for expressions over "devices". It uses the limits and the observer of config, and sets
// name, types and options itself.
func NewEnvironment(config cel.Config) (*Environment, error) {
	return newEnvironment(config, devicesVariable, deviceVariable, deviceType)
}

// NewNodeEnvironment returns an environment for expressions over "nodes". An element is a [Device] of the driver [NodeDriver]
// with the fields labels, attributes, capacity, devices, pod and pods.
func NewNodeEnvironment(config cel.Config) (*Environment, error) {
	return newEnvironment(config, nodesVariable, nodeVariable, nodeType)
}

func newEnvironment(config cel.Config, set, member string, of *apiservercel.DeclType) (*Environment, error) {
	config.Name = set
	config.Types = []*apiservercel.DeclType{of}
	config.Element = cel.Element{Name: member, Type: of.CelType(), List: set}
	config.Options = append(library.Options(),
		celgo.Variable(set, celgo.ListType(of.CelType())),
		// cel.bind is available because device selectors have it, too.
		ext.Bindings(ext.BindingsVersion(0)),
		// Track macro calls, so that conjuncts print macros as the author wrote them.
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

// NewSelectorEnvironment returns an environment that compiles device selectors, so that celset can check a selector before the
// evaluator of upstream runs it. The compiled expressions must not be evaluated.
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

// Functions returns the declarations of all functions and operators, keyed by name.
func (e *Environment) Functions() map[string]*decls.FunctionDecl { return e.core.Functions() }

// Compile returns an expression of type bool. The expression reads the variables of a device d as d.variables.<name>. In the
// text of a variable, the device is called "device", as in a device selector. The error is a [*cel.Error].
func (e *Environment) Compile(ctx context.Context, expression string, variables ...v1alpha1.Variable) (*Expression, error) {
	return e.compiled(e.core.Compile(ctx, expression, ofCore(variables)...))
}

// CompileInt is Compile for an expression of type int. [Expression.Value] returns its value.
func (e *Environment) CompileInt(ctx context.Context, expression string, variables ...v1alpha1.Variable) (*Expression, error) {
	return e.compiled(e.core.CompileInt(ctx, expression, ofCore(variables)...))
}

// CompileAny is Compile for an expression of any type. The compiled expression must not be evaluated.
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

// Expression is a compiled expression over a set. It is safe for concurrent use. Two Expression values are equal (==) if they
// come from the same compilation. An Environment compiles a text again only if its cache has dropped the text.
type Expression struct {
	program *cel.Program
	// set is the name of the set variable.
	set string
}

// Satisfied evaluates the expression on the devices, in the given order, and charges the budget. If the value is not a bool, it
// returns an error. Every error is a [*cel.Error].
func (e *Expression) Satisfied(ctx context.Context, devices []*Device, budget *cel.Budget) (bool, error) {
	input := inputOf(devices)
	defer input.release()
	return e.program.Evaluate(ctx, input, budget)
}

// Value evaluates an expression of [Environment.CompileInt], as Satisfied does. If the value is not an int, it returns an
// error.
func (e *Expression) Value(ctx context.Context, devices []*Device, budget *cel.Budget) (int64, error) {
	input := inputOf(devices)
	defer input.release()
	return e.program.EvaluateInt(ctx, input, budget)
}

// OutputType returns the static type of the result: bool, int, or dyn if the type is only available at run time.
func (e *Expression) OutputType() string { return e.program.OutputType().String() }

// CostLimit returns the maximum cost of one evaluation, in CEL cost units.
func (e *Expression) CostLimit() uint64 { return e.program.CostLimit() }

// Limits returns the limits of one evaluation.
func (e *Expression) Limits() meter.Limits { return e.program.Limits() }

// Size returns the approximate memory of the compiled expression in bytes.
func (e *Expression) Size() int { return e.program.Size() }
