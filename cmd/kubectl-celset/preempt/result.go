// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"github.com/celset/celset/allocator/preemption"
	"github.com/celset/celset/cmd/kubectl-celset/simulate"
)

// Result is the answer for all nodes.
type Result struct {
	// Subject is the pod.
	Subject  string `json:"subject"`
	Priority int32  `json:"priority"`
	// Forbidden says why nobody is evicted for the pod, on whatever node.
	Forbidden string `json:"forbidden,omitempty"`
	// Error ends the scheduling of the pod on all nodes: claims, classes or devices are at fault, or a
	// limit was crossed.
	Error string `json:"error,omitempty"`
	// Fits are the nodes where the pod's claims fit without anybody being evicted.
	Fits []string `json:"fits,omitempty"`
	// Candidates are the nodes where evicting pods helps, that first on which it costs least. After an
	// error there are only those before it. MoreCandidates is how many are left out.
	Candidates     []Candidate `json:"candidates"`
	MoreCandidates int         `json:"moreCandidates,omitempty"`
	// Refused are nodes with devices for the pod where evicting doesn't help, by name.
	Refused     []Refusal `json:"refused,omitempty"`
	MoreRefused int       `json:"moreRefused,omitempty"`
	// Holds are what a scheduler probably holds for pods that are nominated to a node.
	Holds []Hold `json:"holds,omitempty"`
	// Notes say what was not looked at, and may make the scheduler decide otherwise.
	Notes []string `json:"notes"`
}

// Candidate is a node with who has to go from it.
type Candidate struct {
	Node string `json:"node"`
	// Victims are the most important first.
	Victims []Victim `json:"victims"`
	Cost    Cost     `json:"cost"`
	// Exact: nobody else on the node would cost less.
	Exact bool `json:"exact"`
	// Claims are the pod's, with what they would get.
	Claims []simulate.Claim `json:"claims"`

	cost preemption.Cost
}

// Cost is what kube-scheduler compares nodes by first.
type Cost struct {
	// BudgetViolations is for how many pods a disruption budget does not allow it.
	BudgetViolations int   `json:"budgetViolations"`
	HighestPriority  int32 `json:"highestPriority"`
	Pods             int   `json:"pods"`
}

// Victim is a pod that has to go.
type Victim struct {
	// Pod is "namespace/name".
	Pod      string `json:"pod"`
	Priority int32  `json:"priority"`
	// Devices are "driver/pool/device": what its claims give back, with its own end or with that of the
	// other victims.
	Devices []string `json:"devices"`
	// Ending: it is going already.
	Ending bool `json:"ending,omitempty"`
}

// Refusal is a node where evicting does not help.
type Refusal struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
	// Unmet is the first condition with which there is no set of devices if all pods of a lower priority
	// were gone, Never that there would be none if all devices were free.
	Unmet string `json:"unmet,omitempty"`
	Never bool   `json:"never,omitempty"`
	// InTheWay are claims that can't all keep what they have, and would not give it back.
	InTheWay []Obstacle `json:"inTheWay,omitempty"`

	// evicted are the pods of a lower priority, without whom it does not fit either. nil if the reason
	// is another one.
	evicted *trial
}

// Obstacle is a claim that keeps its devices, or a hold.
type Obstacle struct {
	// Claim is empty for a hold.
	Claim   string   `json:"claim,omitempty"`
	Devices []string `json:"devices"`
	// Why it keeps them.
	Why string `json:"why"`
}

// Hold is what is held for a pod that is nominated to a node.
type Hold struct {
	Pod      string `json:"pod"`
	Priority int32  `json:"priority"`
	Node     string `json:"node"`
	// Claims are with what is held.
	Claims []simulate.Claim `json:"claims,omitempty"`
	// Unknown says why it could not be found out.
	Unknown string `json:"unknown,omitempty"`
}

// Helps tells that there is a node for the pod now, or when others are evicted.
func (r *Result) Helps() bool {
	return r.Error == "" && (len(r.Fits) > 0 || len(r.Candidates) > 0)
}
