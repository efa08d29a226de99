// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	celsetv1alpha1 "github.com/celset/celset/apis/celset/v1alpha1"
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

// The defaults of the budget of an attempt, in CEL cost units and in steps. The scheduler schedules one pod at a
// time, so all other pods wait during an attempt. With these defaults an attempt ends after about a second on two
// cores: a cost unit takes at most 250 ns, and one core takes 100,000 to 190,000 steps a second. BenchmarkBudgets in
// test/perf measures both. If other pods wait, attemptTimeout ends the attempt earlier.
const (
	DefaultBudgetCost  int64 = 10_000_000
	DefaultBudgetSteps int64 = 200_000
)

// What a pod of another namespace may have to wait for is an attempt that just began and
// what its namespace has saved up: together little more than half a second, so that a second is enough
// on a busy machine, too.
const (
	DefaultAttemptTimeout       = 400 * time.Millisecond
	DefaultSharePercent   int32 = 20
	DefaultShareBurst           = 150 * time.Millisecond
)

// The defaults of the back-off.
const (
	DefaultBackOffInitial = time.Second
	DefaultBackOffMax     = 5 * time.Minute
)

// The defaults of preemption for devices. Of the first two they are those of DefaultPreemptionArgs.
const (
	DefaultMinCandidateNodesPercentage int32 = 10
	DefaultMinCandidateNodesAbsolute   int32 = 100
	DefaultHoldTimeout                       = 5 * time.Minute
)

// The least values that make sense.
const (
	MinHoldTimeout = time.Second
	MinBackOff     = time.Second
	MinShareBurst  = time.Millisecond
)

// The sets of devices that fit are counted so often, for the metrics. What that takes is bounded apart
// from it, so a short interval is for small clusters and for tests.
const (
	DefaultFragmentationInterval = 5 * time.Minute
	MinFragmentationInterval     = time.Second
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

	// filterTimeout limits the time of the search for devices on one node in the Filter phase. A node
	// whose search takes longer is unsuitable. 0 means no limit.
	// +optional
	// +default="10s"
	FilterTimeout *metav1.Duration `json:"filterTimeout,omitempty"`

	// bindingTimeout limits the time that PreBind waits for the binding conditions of the allocated
	// devices. At least 1s.
	// +optional
	// +default="600s"
	BindingTimeout *metav1.Duration `json:"bindingTimeout,omitempty"`

	// attemptTimeout limits the time of one attempt to schedule a pod with claims, for all nodes together,
	// while pods of other namespaces wait. If no such pod waits, an attempt goes on. 0 means no limit.
	// +optional
	// +default="400ms"
	AttemptTimeout *metav1.Duration `json:"attemptTimeout,omitempty"`

	// budget limits the work of one attempt to schedule a pod with CEL device constraints or preferences.
	// Unlike a limit of time, this limit does not depend on the machine and on its load.
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// defaultPreference is the policy for requests without a CELDevicePreference: KeepWhole, or empty for
	// none. With a policy the plugin uses its own allocator for all pods with claims, so that allocator
	// can't be Upstream. defaultPreference has no effect while the feature gate is off.
	// +optional
	DefaultPreference celsetv1alpha1.PreferencePolicy `json:"defaultPreference,omitempty"`

	// devicePreemption says how pods are evicted for devices. It has no effect while the feature gate
	// CelsetDevicePreemption is off.
	// +optional
	DevicePreemption *DevicePreemption `json:"devicePreemption,omitempty"`

	// cacheSize limits the memory of the allocator's cache. If the cache is full, the allocator drops the
	// entry that was not used for the longest time. At least 1Mi.
	// +optional
	// +default="256Mi"
	CacheSize *resource.Quantity `json:"cacheSize,omitempty"`

	// backOff delays the next attempt for a claim whose attempt used up a budget or its time. backOff
	// applies to all profiles with this plugin. Profiles with different values are refused.
	// +optional
	BackOff *BackOff `json:"backOff,omitempty"`

	// share limits the part of the scheduler's time that pods of one namespace may take while pods of
	// other namespaces wait. share applies to all profiles, as backOff does.
	// +optional
	Share *Share `json:"share,omitempty"`

	// fragmentationInterval is the time between two counts of the sets of devices that fit, for the
	// metrics. If counting takes long, the scheduler waits a hundred times as long instead. At least 1s. 0
	// turns counting off. fragmentationInterval applies to all profiles, as backOff does.
	// +optional
	// +default="5m"
	FragmentationInterval *metav1.Duration `json:"fragmentationInterval,omitempty"`

	// allocator says for which pods the plugin uses its own allocator.
	// +optional
	// +default="Constrained"
	Allocator AllocatorMode `json:"allocator,omitempty"`
}

// Budget limits the work of one attempt to schedule a pod, for the searches on all nodes together. The search on
// one node gets at most a half of the budget. If a search needs more, the attempt ends with an error that says how
// far the search got, and the pod is tried again later.
//
// Searches for a better set, for preferences, have limits of their own, which are parts of these numbers: a fifth of
// the cost and a tenth of the steps on all nodes together, a tenth of the cost and a hundredth of the steps on one
// node. If such a limit is reached, the best set so far is allocated. The policy KeepWhole counts each step as eight.
type Budget struct {
	// cost limits the cost of all evaluations of CEL device constraints, in CEL cost units.
	// +optional
	// +default=10000000
	// +kubebuilder:validation:Minimum=1
	Cost *int64 `json:"cost,omitempty"`

	// steps limits the steps of the searches. In a step a search looks for one more device.
	// +optional
	// +default=200000
	// +kubebuilder:validation:Minimum=1
	Steps *int64 `json:"steps,omitempty"`
}

// DevicePreemption says how pods of a lower priority are evicted for a pod that fits nowhere for lack of
// devices.
type DevicePreemption struct {
	// minCandidateNodesPercentage is the part of the nodes on which eviction may help that are looked at
	// before one of them is chosen, in percent. It means what the field of DefaultPreemptionArgs means.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MinCandidateNodesPercentage *int32 `json:"minCandidateNodesPercentage,omitempty"`

	// minCandidateNodesAbsolute is the least number of these nodes.
	// +optional
	// +default=100
	// +kubebuilder:validation:Minimum=0
	MinCandidateNodesAbsolute *int32 `json:"minCandidateNodesAbsolute,omitempty"`

	// holdTimeout limits the time for which devices are held for a pod after its victims have to have
	// ended. At least 1s.
	// +optional
	// +default="5m"
	HoldTimeout *metav1.Duration `json:"holdTimeout,omitempty"`
}

// BackOff is a delay that doubles with each attempt that fails because of a budget or of time. It starts
// again when the claim has got its devices or was deleted.
type BackOff struct {
	// initial is the delay after the first failed attempt. At least 1s.
	// +optional
	// +default="1s"
	Initial *metav1.Duration `json:"initial,omitempty"`

	// max is the longest delay. At least initial.
	// +optional
	// +default="5m"
	Max *metav1.Duration `json:"max,omitempty"`
}

// Share limits the scheduler's time for each namespace. If a namespace has used up its share, its pods wait
// as long as pods of other namespaces wait that have not. A namespace that is alone has no limit.
type Share struct {
	// percent is the part of the scheduler's time. 100 means no limit.
	// +optional
	// +default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// burst is the time that a namespace may take at once after it took none for a while. It also limits
	// the excess that is remembered. At least 1ms.
	// +optional
	// +default="150ms"
	Burst *metav1.Duration `json:"burst,omitempty"`
}

// AllocatorMode says for which pods the plugin uses its own allocator and not
// that of Kubernetes.
// +enum
type AllocatorMode string

const (
	// AllocatorConstrained means only for pods with a claim that has a CEL device
	// constraint or a preference, of its own or of a class. With a defaultPreference that is
	// all pods with claims.
	AllocatorConstrained AllocatorMode = "Constrained"
	// AllocatorAll means for all pods with claims.
	AllocatorAll AllocatorMode = "All"
	// AllocatorUpstream means for no pod. CEL device constraints are not read, as in a
	// kube-scheduler of Kubernetes, where a claim with one is never allocated, and neither are
	// preferences. Attempts and selectors have their limits all the same. budget and cacheSize have no
	// effect.
	AllocatorUpstream AllocatorMode = "Upstream"
)
