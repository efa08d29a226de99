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

// One process schedules one pod at a time, so what one pod's search takes is what all
// others wait. The defaults are such that an attempt ends in about a second on two cores: a
// cost unit stands for at most 250 ns, so that a budget is 1.25 s at worst, and a fraction of
// that for usual expressions; searches were measured to take 100,000 to 190,000 steps a second
// on one core. BenchmarkBudgets in test/perf has the figures. A node is searched by one core, and
// the nodes of an attempt by as many as there are, of which two are counted on. When others
// wait the attempt's time ends it before.
const (
	DefaultBudgetCost         int64 = 5_000_000
	DefaultBudgetSteps        int64 = 100_000
	DefaultBudgetAttemptCost  int64 = 2 * DefaultBudgetCost
	DefaultBudgetAttemptSteps int64 = 2 * DefaultBudgetSteps
)

// Whoever wants a better set has one already, and others wait. So looking for it on a node may take a
// fiftieth of the steps and a fifth of the cost that finding one may: enough for an expression that has
// to be asked about every set of four of 16 devices.
const (
	DefaultPreferenceBudgetCost         int64 = 1_000_000
	DefaultPreferenceBudgetSteps        int64 = 2_000
	DefaultPreferenceBudgetAttemptCost  int64 = 2 * DefaultPreferenceBudgetCost
	DefaultPreferenceBudgetAttemptSteps int64 = 10 * DefaultPreferenceBudgetSteps
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

	// FilterTimeout limits how long the search for devices on one node may
	// take in the Filter phase; the node is unsuitable when it is over. 0
	// means no limit. Default: 10s.
	FilterTimeout *metav1.Duration `json:"filterTimeout,omitempty"`

	// BindingTimeout limits how long PreBind waits for the binding conditions
	// of the allocated devices. At least 1s. Default: 600s.
	BindingTimeout *metav1.Duration `json:"bindingTimeout,omitempty"`

	// AttemptTimeout limits how long one attempt to schedule a pod with claims may take
	// on all nodes together while pods of other namespaces wait. As long as nobody waits,
	// an attempt goes on. 0 means no limit. Default: 400ms.
	AttemptTimeout *metav1.Duration `json:"attemptTimeout,omitempty"`

	// Budget limits how much work the search for devices may be for a pod with CEL
	// device constraints. Unlike the time it takes, that does not depend on the machine
	// and on what else it does.
	Budget *Budget `json:"budget,omitempty"`

	// PreferenceBudget limits how much work it may be to look for a better set of devices when
	// one was found, for a pod with preferences.
	PreferenceBudget *PreferenceBudget `json:"preferenceBudget,omitempty"`

	// DefaultPreference is the policy by which devices are chosen for requests that no
	// CELDevicePreference is about: KeepWhole, or empty for none. The plugin uses its own
	// allocator for all pods with claims then, whatever Allocator says: what is meant for
	// claims that say nothing would pass by most of them otherwise. So it can't be combined
	// with the allocator Upstream. While the feature gate is off it has no effect. Default:
	// empty.
	DefaultPreference celsetv1alpha1.PreferencePolicy `json:"defaultPreference,omitempty"`

	// DevicePreemption says how pods are evicted for devices. While the feature gate
	// CelsetDevicePreemption is off it has no effect.
	DevicePreemption *DevicePreemption `json:"devicePreemption,omitempty"`

	// CacheSize limits the memory for what was found out about devices and claims, which
	// further nodes and pods need again. What was not used for the longest time is
	// forgotten first, and found out again when it is needed: the search takes longer, and
	// finds the same. At least 1Mi. Default: 256Mi.
	CacheSize *resource.Quantity `json:"cacheSize,omitempty"`

	// BackOff is how long a claim whose attempt used up a budget or its time is left
	// alone. It is for the whole scheduler: the profile that sets it does so for all
	// profiles with this plugin, in whatever order they are. Profiles that set it
	// differently are refused. Default, if no profile sets it: that of its fields.
	BackOff *BackOff `json:"backOff,omitempty"`

	// Share is the part of the scheduler's time that the pods of one namespace may take
	// while pods of other namespaces wait. It is for the whole scheduler, as BackOff is.
	Share *Share `json:"share,omitempty"`

	// FragmentationInterval is how long the process that schedules waits after it has counted,
	// for the metrics, how many sets of devices fit, until it does so again. It waits a hundred
	// times as long as counting took, if that is more. 0 means that it never counts. It is for the
	// whole scheduler, as BackOff is. At least 1s. Default, if no profile sets it: 5m.
	FragmentationInterval *metav1.Duration `json:"fragmentationInterval,omitempty"`

	// Allocator says for which pods the plugin uses its own allocator. Default:
	// Constrained.
	Allocator AllocatorMode `json:"allocator,omitempty"`
}

// Budget is what searches may use up. If they would need more, scheduling of the pod is
// aborted with an error that says how far the search got, and tried again later.
type Budget struct {
	// Cost is what all evaluations of CEL device constraints may cost together for one
	// node, in CEL cost units. At least 1. Default: 5000000.
	Cost *int64 `json:"cost,omitempty"`

	// Steps is how many steps the search may take on one node: how often it looks for
	// one more device. At least 1. Default: 100000.
	Steps *int64 `json:"steps,omitempty"`

	// AttemptCost is what Cost is, for all nodes of one attempt to schedule the pod
	// together. At least 1. Default: 10000000.
	AttemptCost *int64 `json:"attemptCost,omitempty"`

	// AttemptSteps is what Steps is, for all nodes of one attempt to schedule the pod
	// together. At least 1. Default: 200000.
	AttemptSteps *int64 `json:"attemptSteps,omitempty"`
}

// PreferenceBudget is what searches for better sets may use up, beside [Budget]. When it is used
// up, the best set so far is allocated: nothing fails.
type PreferenceBudget struct {
	// Cost is what all evaluations of preferences, and of constraints on sets that might be
	// better, may cost together for one node, in CEL cost units. At least 1. Default: 1000000.
	Cost *int64 `json:"cost,omitempty"`

	// Steps is how many steps all searches for better sets may take on one node. One with
	// policy KeepWhole counts as eight. At least 1. Default: 2000.
	Steps *int64 `json:"steps,omitempty"`

	// AttemptCost is what Cost is, for all nodes of one attempt to schedule the pod
	// together. At least 1. Default: 2000000, or Cost if that is more.
	AttemptCost *int64 `json:"attemptCost,omitempty"`

	// AttemptSteps is what Steps is, for all nodes of one attempt to schedule the pod
	// together. At least 1. Default: 20000, or Steps if that is more.
	AttemptSteps *int64 `json:"attemptSteps,omitempty"`
}

// DevicePreemption is about pods that fit nowhere for lack of devices while others of a lower priority
// have some.
type DevicePreemption struct {
	// MinCandidateNodesPercentage and MinCandidateNodesAbsolute are on how many nodes it is found out
	// whom to evict before one of them is chosen: of the nodes where that may help so many percent, and
	// at least so many. They mean what those of DefaultPreemptionArgs mean. Default: 10 and 100.
	MinCandidateNodesPercentage *int32 `json:"minCandidateNodesPercentage,omitempty"`
	MinCandidateNodesAbsolute   *int32 `json:"minCandidateNodesAbsolute,omitempty"`

	// HoldTimeout is for how long devices are held for a pod for which others were evicted, from when
	// these have to have ended. At least 1s. Default: 5m.
	HoldTimeout *metav1.Duration `json:"holdTimeout,omitempty"`
}

// BackOff doubles with each attempt that fails because of a budget or the time. It is
// forgotten when the claim gets its devices or is deleted.
type BackOff struct {
	// Initial is the time after the first such attempt. At least 1s. Default: 1s.
	Initial *metav1.Duration `json:"initial,omitempty"`

	// Max is the longest time. At least Initial. Default: 5m.
	Max *metav1.Duration `json:"max,omitempty"`
}

// Share is about namespaces that have used up their part: their pods are put off as long
// as there are pods of namespaces that have not. Who is alone is not put off.
type Share struct {
	// Percent is the part of the scheduler's time. From 1 to 100, where 100 means that
	// nobody is put off. Default: 20.
	Percent *int32 `json:"percent,omitempty"`

	// Burst is the time that a namespace may take at once after it took none for a
	// while, and no more than this is remembered of what it took in excess. At least
	// 1ms. Default: 150ms.
	Burst *metav1.Duration `json:"burst,omitempty"`
}

// AllocatorMode says for which pods the plugin uses its own allocator and not
// that of Kubernetes.
type AllocatorMode string

const (
	// AllocatorConstrained means only for pods with a claim that has a CEL device
	// constraint or a preference, of its own or of a class. With a DefaultPreference that is
	// all pods with claims.
	AllocatorConstrained AllocatorMode = "Constrained"
	// AllocatorAll means for all pods with claims.
	AllocatorAll AllocatorMode = "All"
	// AllocatorUpstream means for no pod. CEL device constraints are not read, as in a
	// kube-scheduler of Kubernetes, where a claim with one is never allocated, and neither are
	// preferences. Attempts and selectors have their limits all the same; Budget,
	// PreferenceBudget and CacheSize mean nothing.
	AllocatorUpstream AllocatorMode = "Upstream"
)
