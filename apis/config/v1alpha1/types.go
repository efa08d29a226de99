// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
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

// The defaults of the budget are those of the allocator: about what a search gets
// done in DefaultFilterTimeout.
const (
	DefaultBudgetCost  int64 = 100_000_000
	DefaultBudgetSteps int64 = 1_000_000
)

// DefaultCacheSize is what the allocator's cache may take. With less than MinCacheSize next
// to nothing would be remembered from one node to the other.
const (
	DefaultCacheSize int64 = 256 << 20
	MinCacheSize     int64 = 1 << 20
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

	// Budget limits how much work the search for devices on one node may be for a
	// pod with CEL device constraints. Unlike the time it takes, that does not depend
	// on the machine and on what else it does.
	Budget *Budget `json:"budget,omitempty"`

	// CacheSize limits the memory for what was found out about devices and claims, which
	// further nodes and pods need again. What was not used for the longest time is
	// forgotten first, and found out again when it is needed: the search takes longer, and
	// finds the same. At least 1Mi. Default: 256Mi.
	CacheSize *resource.Quantity `json:"cacheSize,omitempty"`

	// Allocator says for which pods the plugin uses its own allocator. Default:
	// Constrained.
	Allocator AllocatorMode `json:"allocator,omitempty"`
}

// Budget is what one search may use up. If it would need more, scheduling of the
// pod is aborted with an error that says how far the search got, and tried again
// later.
type Budget struct {
	// Cost is what all evaluations of CEL device constraints may cost together,
	// in CEL cost units. At least 1. Default: 100000000.
	Cost *int64 `json:"cost,omitempty"`

	// Steps is how many steps the search may take: how often it looks for one
	// more device. At least 1. Default: 1000000.
	Steps *int64 `json:"steps,omitempty"`
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
