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
// of opaque.parameters in a configuration for the driver celset.dev.
type CELDeviceConstraint struct {
	metav1.TypeMeta `json:",inline"`

	// name is the name by which claims refer to the constraint: matchAttribute celset.dev/<name>. It is
	// a C identifier of at most 32 bytes, which is what the API server accepts
	// after the slash of a fully qualified name. It is unique within the claim
	// or class that holds the definition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// expression is a CEL expression that returns a bool. Its variable
	// `devices` is the list of all devices allocated for the covered requests.
	// At most 10,240 bytes, together with the variables.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`

	// variables are expressions over one device, which the expression reads of any
	// device d as d.variables.<name>. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Variables []Variable `json:"variables,omitempty"`

	// enforcement says whether the constraint holds without a reference. The default is OnReference,
	// which is the only value in a claim.
	// +optional
	// +default="OnReference"
	Enforcement Enforcement `json:"enforcement,omitempty"`

	// failurePolicy says how a failed evaluation is handled. An evaluation fails, for example, because a device lacks an
	// attribute. The default is Fail.
	// +optional
	// +default="Fail"
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
}

// Enforcement says for whom a constraint holds.
// +enum
type Enforcement string

const (
	// EnforcementOnReference means that the constraint holds for claims that refer to it.
	EnforcementOnReference Enforcement = "OnReference"
	// EnforcementAlways means that the constraint also holds, without a reference, for each request of
	// the DeviceClass for two or more devices, over the devices of that request alone.
	EnforcementAlways Enforcement = "Always"
)

// FailurePolicy says how a failed evaluation of a constraint is handled.
// +enum
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
	// name is the name of the variable: expressions read variables.<name>. It is a C identifier of at most 32 bytes, unique within
	// the definition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// expression is a CEL expression of any type. Its variable `device` is the device, as
	// in a device selector; `variables.<name>` is a variable that was defined before this one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`
}

// CELDevicePreference says which set of devices is best. It is the type of opaque.parameters in a configuration for the
// driver celset.dev, as [CELDeviceConstraint] is. No claim has to refer to it. In a claim it applies to the requests that it
// names. In a DeviceClass it applies to each request of the class alone, unless a preference of the claim applies to that
// request.
type CELDevicePreference struct {
	metav1.TypeMeta `json:",inline"`

	// name is the name of the preference in messages. It is a C identifier of at most 32 bytes, unique among the
	// preferences of the claim or class.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*$`
	Name string `json:"name"`

	// type says which of the fields expression and policy is set. The other one must be absent.
	// +required
	// +unionDiscriminator
	Type PreferenceType `json:"type"`

	// expression is a CEL expression that returns an int: of two sets that satisfy every
	// constraint the one with the greater value is taken, of those with the same value the
	// first. Its variable `devices` is the list of all devices allocated for the requests. At
	// most 10,240 bytes, together with the variables.
	// +optional
	// +unionMember
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression,omitempty"`

	// policy is a built-in preference about the devices that are left over, which no expression can
	// read.
	// +optional
	// +unionMember
	Policy PreferencePolicy `json:"policy,omitempty"`

	// variables are expressions over one device, which the expression reads of any
	// device d as d.variables.<name>. Only the type Expression has them. At most 32.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Variables []Variable `json:"variables,omitempty"`

	// requests are the names of the requests to which the preference applies, as "request" or
	// "request/alternative". The default is all requests of the claim. A class can't name requests.
	// +optional
	// +listType=atomic
	Requests []string `json:"requests,omitempty"`
}

// PreferenceType is the member of a [CELDevicePreference] that is set.
// +enum
type PreferenceType string

const (
	// PreferenceTypeExpression means that expression is set.
	PreferenceTypeExpression PreferenceType = "Expression"
	// PreferenceTypePolicy means that policy is set.
	PreferenceTypePolicy PreferenceType = "Policy"
)

// CELNodeSetConstraint says by a CEL expression on which nodes the pods of a PodGroup may run together. It is the type of
// opaque.parameters in a configuration for the driver celset.dev, in a claim of the pods or a class that such a claim
// uses, and of the annotation celset.dev/node-set-constraint. A PodGroup refers to it as the topology key celset.dev/<name>. No node has such a
// label: a scheduler that does not know these constraints places no pod of the group.
type CELNodeSetConstraint struct {
	metav1.TypeMeta `json:",inline"`

	// name is the name by which PodGroups refer to the constraint: the topology key celset.dev/<name>. It is a C identifier of at most 32 bytes, as the names of constraints of devices, with
	// a letter or digit at its end and a letter at its beginning: a topology key is the key of a label.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?$`
	Name string `json:"name"`

	// expression is a CEL expression that returns a bool. Its variable `nodes` is the list of the nodes that the pods of the
	// group run on. At most 10,240 bytes, together with the variables and the preference.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=10240
	Expression string `json:"expression"`

	// preference is a CEL expression over `nodes` that returns an int: of two sets that satisfy the expression the one with
	// the greater value is taken, of those with the same value the first.
	// +optional
	// +kubebuilder:validation:MaxLength=10240
	Preference string `json:"preference,omitempty"`

	// variables are expressions over one node, `node`, which the other expressions read of any node n as n.variables.<name>.
	// At most 32.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Variables []Variable `json:"variables,omitempty"`

	// podsPerNode is the greatest number of pods of the group on a node: at least 1, at most [MaxNodeSetSize]. Absent
	// means 1.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	PodsPerNode *int32 `json:"podsPerNode,omitempty"`
}
