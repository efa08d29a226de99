// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// DriverName is the driver of the opaque configuration that holds a
	// definition. Driver names are compared byte by byte, as Kubernetes does.
	DriverName = "celset.dev"

	// AttributeDomain is the domain of the attribute name that refers to a
	// definition: matchAttribute celset.dev/<name>.
	AttributeDomain = "celset.dev"

	// MaxExpressionLength is the maximum length of an expression, in bytes. It
	// is the limit of the expression of a CEL device selector. The API server
	// holds the whole of the parameters to 10 KiB too, so that a stored
	// expression is a little shorter.
	MaxExpressionLength = 10 * 1024

	// MaxVariables is the maximum number of variables of a definition.
	MaxVariables = 32

	// FeatureGate is the name of the feature gate of CEL device constraints,
	// as KEP-5254 names it.
	FeatureGate = "DRACELDeviceConstraint"
)

// CELDeviceConstraint defines a constraint by a CEL expression. It is the type
// of opaque.parameters in a configuration for the driver [DriverName].
type CELDeviceConstraint struct {
	metav1.TypeMeta `json:",inline"`

	// Name is what claims refer to, as matchAttribute celset.dev/<name>. It is
	// a C identifier of at most 32 bytes, which is what the API server accepts
	// after the slash of a fully qualified name. It is unique within the claim
	// or class that holds the definition.
	Name string `json:"name"`

	// Expression is a CEL expression that returns a bool. Its variable
	// `devices` is the list of all devices allocated for the covered requests.
	// At most [MaxExpressionLength] bytes, together with the variables.
	Expression string `json:"expression"`

	// Variables are expressions over one device, which the expression reads of any
	// device d as d.variables.<name>. At most [MaxVariables].
	Variables []Variable `json:"variables,omitempty"`

	// Enforcement says whether the constraint holds without a reference. Empty means
	// [EnforcementOnReference], the only value in a claim.
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// FailurePolicy is what happens when an evaluation fails, for example because a device lacks an
	// attribute. Empty means [FailurePolicyFail].
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
}

// Enforcement says for whom a constraint holds.
type Enforcement string

const (
	// EnforcementOnReference means that the constraint holds for claims that refer to it.
	EnforcementOnReference Enforcement = "OnReference"
	// EnforcementAlways means that the constraint also holds, without a reference, for each request of
	// the DeviceClass for two or more devices, over the devices of that request alone.
	EnforcementAlways Enforcement = "Always"
)

// FailurePolicy is what happens when an evaluation of a constraint fails.
type FailurePolicy string

const (
	// FailurePolicyFail means that the attempt to allocate the claim ends, on all nodes, as KEP-5254
	// has it: the expression is wrong for some devices, and nobody should find out by chance.
	FailurePolicyFail FailurePolicy = "Fail"
	// FailurePolicyNodeDoesNotFit means that the claim does not fit the node on whose devices it
	// failed, and other nodes are looked at.
	FailurePolicyNodeDoesNotFit FailurePolicy = "NodeDoesNotFit"
)

// Variable gives an expression over one device a name.
type Variable struct {
	// Name is what it is read by. It is a C identifier of at most 32 bytes, unique within
	// the definition.
	Name string `json:"name"`

	// Expression is a CEL expression of any type. Its variable `device` is the device, as
	// in a device selector; `variables.<name>` is a variable that stands before this one.
	Expression string `json:"expression"`
}
