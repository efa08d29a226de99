// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group of the types in this package.
	GroupName = "config.celset.dev"
	// Kind is the kind of [DynamicResourcesCELArgs].
	Kind = "DynamicResourcesCELArgs"
)

// SchemeGroupVersion is the API version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// The defaults and the minimum are those of DynamicResourcesArgs, the arguments
// of the in-tree plugin.
const (
	DefaultFilterTimeout  = 10 * time.Second
	DefaultBindingTimeout = 600 * time.Second
	MinBindingTimeout     = time.Second
)

// DynamicResourcesCELArgs are the arguments of the plugin DynamicResourcesCEL.
// In a KubeSchedulerConfiguration apiVersion and kind may be left out.
type DynamicResourcesCELArgs struct {
	metav1.TypeMeta `json:",inline"`

	// FilterTimeout limits how long the search for devices on one node may
	// take in the Filter phase; the node is unsuitable when it is over. 0
	// means no limit. Default: 10s.
	FilterTimeout *metav1.Duration `json:"filterTimeout,omitempty"`

	// BindingTimeout limits how long PreBind waits for the binding conditions
	// of the allocated devices. At least 1s. Default: 600s.
	BindingTimeout *metav1.Duration `json:"bindingTimeout,omitempty"`

	// Allocator says for which pods the plugin uses its own allocator. Default:
	// Constrained.
	Allocator AllocatorMode `json:"allocator,omitempty"`
}

// AllocatorMode says for which pods the plugin uses its own allocator and not
// that of Kubernetes.
type AllocatorMode string

const (
	// AllocatorConstrained means only for pods with a claim that has a CEL device
	// constraint.
	AllocatorConstrained AllocatorMode = "Constrained"
	// AllocatorAll means for all pods with claims.
	AllocatorAll AllocatorMode = "All"
)
