// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package served encodes the configuration of a celset-scheduler for tools that simulate it. The configuration is an
// annotation of the Lease of the scheduler's leader election, so every client that may read Leases can read it. If the Lease
// was renewed recently, the scheduler still runs. A scheduler without leader election renews a Lease for this purpose only.
//
//	annotation, err := served.Encode(&served.Scheduler{Constraints: true, Profiles: profiles}) // celset-scheduler
//	schedulers, err := leases.Read(ctx, client, "kube-system")                                   // kubectl celset
//	profile := schedulers.Profile(pod.Spec.SchedulerName)
package served

import (
	"encoding/json"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
)

// Scheduler is the published configuration of one celset-scheduler.
type Scheduler struct {
	// Lease is "namespace/name" of the annotated Lease. Until is the time when the Lease expires.
	Lease string    `json:"-"`
	Until time.Time `json:"-"`
	// Version is the version of celset-scheduler.
	Version string `json:"version,omitempty"`
	// Constraints is set if the feature gate DRACELDeviceConstraint is on.
	Constraints bool `json:"constraints"`
	// Profiles are the profiles with the plugin DynamicResourcesCEL.
	Profiles []Profile `json:"profiles"`
}

// Profile is a profile of the scheduler.
type Profile struct {
	// SchedulerName is the name that pods use in spec.schedulerName.
	SchedulerName string `json:"schedulerName"`
	// Args are the arguments of the plugin, with defaults.
	Args configv1alpha1.DynamicResourcesCELArgs `json:"args"`
}

// Serves reports whether pods of the profile may use constraints.
func (p *Profile) Serves() bool { return p.Args.Allocator != configv1alpha1.AllocatorUpstream }

// Encode returns the value of the annotation.
func Encode(s *Scheduler) (string, error) {
	raw, err := json.Marshal(s)
	return string(raw), err
}

// Schedulers are the schedulers that publish their configuration.
type Schedulers []*Scheduler

// Decode returns the configuration from the annotation of a Lease.
func Decode(lease *coordinationv1.Lease, text string) (*Scheduler, error) {
	s := &Scheduler{Lease: lease.Namespace + "/" + lease.Name}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, err
	}
	s.Until = Until(lease)
	for i := range s.Profiles {
		// An older celset-scheduler does not publish arguments that are new in this version, so they get their defaults.
		configv1alpha1.SetDefaults(&s.Profiles[i].Args)
	}
	return s, nil
}

// Profile returns the profile of that name and its scheduler, or nil if there is no such profile. If several schedulers have
// the profile, Profile returns the one from the Lease that expires last.
func (s Schedulers) Profile(schedulerName string) (*Scheduler, *Profile) {
	var scheduler *Scheduler
	var profile *Profile
	for _, one := range s {
		i := slices.IndexFunc(one.Profiles, func(p Profile) bool { return p.SchedulerName == schedulerName })
		if i >= 0 && (scheduler == nil || one.Until.After(scheduler.Until)) {
			scheduler, profile = one, &one.Profiles[i]
		}
	}
	return scheduler, profile
}

// Names returns the sorted names of the profiles whose pods may use constraints.
func (s Schedulers) Names() []string {
	var names []string
	for _, one := range s {
		for _, p := range one.Profiles {
			if one.Constraints && p.Serves() {
				names = append(names, p.SchedulerName)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Until returns the time when a Lease expires.
func Until(lease *coordinationv1.Lease) (until time.Time) {
	if renewed, seconds := lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds; renewed != nil && seconds != nil {
		until = renewed.Add(time.Duration(*seconds) * time.Second)
	}
	return until
}
