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

// These defaults and this minimum are the same as in DynamicResourcesArgs, the arguments of the in-tree plugin.
const (
	DefaultFilterTimeout  = 10 * time.Second
	DefaultBindingTimeout = 600 * time.Second
	MinBindingTimeout     = time.Second
)

// The defaults of the budget of an attempt, in CEL cost units and in steps. The scheduler schedules one pod at a time, so all
// other pods wait during an attempt. With these defaults an attempt ends after about a second on two cores. A cost unit takes at
// most 250 ns, and one core takes 100,000 to 190,000 steps a second. BenchmarkBudgets in test/perf measures both. If other pods
// wait, attemptTimeout ends the attempt earlier.
const (
	DefaultBudgetCost  int64 = 10_000_000
	DefaultBudgetSteps int64 = 200_000
)

// The defaults of the shares of namespaces. A pod waits at most for the current attempt of another namespace, and then for the
// burst of that namespace. Both together take little more than half a second, so the wait stays below a second even on a busy
// machine.
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

// The defaults of preemption for devices. The first two are the same as in DefaultPreemptionArgs.
const (
	DefaultMinCandidateNodesPercentage int32 = 10
	DefaultMinCandidateNodesAbsolute   int32 = 100
	DefaultHoldTimeout                       = 5 * time.Minute
)

// The minimum values that validation accepts.
const (
	MinHoldTimeout = time.Second
	MinBackOff     = time.Second
	MinShareBurst  = time.Millisecond
)

// The interval at which the scheduler counts free sets of devices, for the metrics. The time for counting has a limit of its
// own, so a short interval is useful only for small clusters and for tests.
const (
	DefaultFragmentationInterval = 5 * time.Minute
	MinFragmentationInterval     = time.Second
)

// DefaultCacheSize is the default size of the allocator's cache. In a cache smaller than MinCacheSize, hardly any result would
// remain from one node to the next.
const (
	DefaultCacheSize int64 = 256 << 20
	MinCacheSize     int64 = 1 << 20
)

// DynamicResourcesCELArgs are the arguments of the plugin DynamicResourcesCEL. apiVersion and kind are optional in a
// KubeSchedulerConfiguration.
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

	// budget limits the work of one attempt to schedule a pod with CEL device constraints or preferences. Unlike a time limit, it
	// does not depend on the machine and its load.
	// +optional
	Budget *Budget `json:"budget,omitempty"`

	// defaultPreference is the policy for requests without a CELDevicePreference: KeepWhole, or empty for
	// none. With a policy the plugin uses its own allocator for all pods with claims, so that allocator
	// can't be Upstream. defaultPreference has no effect while the feature gate is off.
	// +optional
	DefaultPreference celsetv1alpha1.PreferencePolicy `json:"defaultPreference,omitempty"`

	// devicePreemption configures the eviction of pods for devices. It has no effect while the feature gate CelsetDevicePreemption
	// is off.
	// +optional
	DevicePreemption *DevicePreemption `json:"devicePreemption,omitempty"`

	// cacheSize limits the memory of the allocator's cache. If the cache is full, the allocator drops the least recently used entry.
	// At least 1Mi.
	// +optional
	// +default="256Mi"
	CacheSize *resource.Quantity `json:"cacheSize,omitempty"`

	// backOff delays the next attempt for a claim whose attempt used up a budget or its time. backOff applies to all profiles with
	// this plugin. Profiles with different values are rejected.
	// +optional
	BackOff *BackOff `json:"backOff,omitempty"`

	// share limits the part of the scheduler's time that pods of one namespace may take while pods of
	// other namespaces wait. share applies to all profiles, as backOff does.
	// +optional
	Share *Share `json:"share,omitempty"`

	// fragmentationInterval is the time between two counts of the free sets of devices, for the metrics. After a count, the
	// scheduler waits at least a hundred times the duration of the count. At least 1s. 0 turns counting off.
	// fragmentationInterval applies to all profiles, as backOff does.
	// +optional
	// +default="5m"
	FragmentationInterval *metav1.Duration `json:"fragmentationInterval,omitempty"`

	// allocator specifies which pods get devices from the plugin's own allocator.
	// +optional
	// +default="Constrained"
	Allocator AllocatorMode `json:"allocator,omitempty"`
}

// Budget limits the work of one attempt to schedule a pod, for the searches on all nodes together. The search on one node gets at
// most a half of the budget. If a search needs more, the attempt ends with an error that reports the progress of the search. The
// pod is tried again later.
//
// Searches for a better set, for preferences, have limits that are parts of this budget. On all nodes together the limits are a
// fifth of the cost and a tenth of the steps. On one node they are a tenth of the cost and a hundredth of the steps. If such a
// limit is reached, the best set so far is allocated. The policy KeepWhole counts each step as eight.
type Budget struct {
	// cost limits the cost of all evaluations of CEL device constraints, in CEL cost units.
	// +optional
	// +default=10000000
	// +kubebuilder:validation:Minimum=1
	Cost *int64 `json:"cost,omitempty"`

	// steps limits the steps of all searches. In each step, a search looks for one more device.
	// +optional
	// +default=200000
	// +kubebuilder:validation:Minimum=1
	Steps *int64 `json:"steps,omitempty"`
}

// DevicePreemption specifies how pods of a lower priority are evicted for a pod that fits on no node because devices are missing.
type DevicePreemption struct {
	// minCandidateNodesPercentage is the minimum percentage of candidate nodes that are examined before one is chosen. A
	// candidate is a node where eviction may help. The field has the same meaning as in DefaultPreemptionArgs.
	// +optional
	// +default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MinCandidateNodesPercentage *int32 `json:"minCandidateNodesPercentage,omitempty"`

	// minCandidateNodesAbsolute is the minimum number of candidate nodes that are examined before one is chosen.
	// +optional
	// +default=100
	// +kubebuilder:validation:Minimum=0
	MinCandidateNodesAbsolute *int32 `json:"minCandidateNodesAbsolute,omitempty"`

	// holdTimeout limits the time that devices are held for a pod after its victims should have terminated. At least 1s.
	// +optional
	// +default="5m"
	HoldTimeout *metav1.Duration `json:"holdTimeout,omitempty"`
}

// BackOff is a delay that doubles with each attempt that fails because of a budget or of time. The delay is reset when the claim
// is allocated or deleted.
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

// Share limits the scheduler's time for each namespace. If a namespace has used up its share, its pods wait while pods of
// namespaces with remaining shares wait. If no other namespace has waiting pods, there is no limit.
type Share struct {
	// percent is the part of the scheduler's time that one namespace may take. 100 means no limit.
	// +optional
	// +default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Percent *int32 `json:"percent,omitempty"`

	// burst is the time that a namespace may take at once after an idle period. If a namespace takes more time than its share,
	// the excess counts later, up to one burst. At least 1ms.
	// +optional
	// +default="150ms"
	Burst *metav1.Duration `json:"burst,omitempty"`
}

// AllocatorMode specifies which pods get devices from the plugin's own allocator instead of Kubernetes' allocator.
// +enum
type AllocatorMode string

const (
	// AllocatorConstrained means that the plugin uses its own allocator only for pods with a claim that has a CEL device
	// constraint or a preference, of its own or of a class. With a defaultPreference it uses its own allocator for all pods
	// with claims.
	AllocatorConstrained AllocatorMode = "Constrained"
	// AllocatorAll means that the plugin uses its own allocator for all pods with claims.
	AllocatorAll AllocatorMode = "All"
	// AllocatorUpstream means that the plugin never uses its own allocator. CEL device constraints and preferences are ignored,
	// as in the kube-scheduler of Kubernetes. So a claim with a CEL device constraint is never allocated. Attempts and
	// selectors are still limited. budget and cacheSize have no effect.
	AllocatorUpstream AllocatorMode = "Upstream"
)
