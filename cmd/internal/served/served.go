// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package served publishes the configuration of a celset-scheduler for tools that simulate it. The configuration is an
// annotation of the Lease of the scheduler's leader election, so every client that may read Leases can read it. If the Lease
// was renewed recently, the scheduler still runs. A scheduler without leader election renews a Lease for this purpose only.
//
//	annotation, err := served.Encode(&served.Scheduler{Constraints: true, Profiles: profiles}) // celset-scheduler
//	schedulers, err := served.Read(ctx, client, "kube-system")                                  // kubectl celset
//	profile := schedulers.Profile(pod.Spec.SchedulerName)
package served

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	configv1alpha1 "github.com/celset/celset/apis/config/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
)

// maxLeases is the maximum number of Leases to read. A namespace with schedulers has few Leases.
const maxLeases = 500

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

// Read returns the schedulers from the Leases of a namespace, including expired Leases.
func Read(ctx context.Context, client kubernetes.Interface, namespace string) (Schedulers, error) {
	leases, err := client.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{Limit: maxLeases})
	if err != nil {
		return nil, err
	}
	var found Schedulers
	for i := range leases.Items {
		lease := &leases.Items[i]
		text, published := lease.Annotations[wellknown.AnnotationServes]
		if !published {
			continue
		}
		scheduler, err := decode(lease, text)
		if err != nil {
			return nil, fmt.Errorf("lease %s/%s: annotation %s: %w", lease.Namespace, lease.Name, wellknown.AnnotationServes, err)
		}
		found = append(found, scheduler)
	}
	return found, nil
}

func decode(lease *coordinationv1.Lease, text string) (*Scheduler, error) {
	s := &Scheduler{Lease: lease.Namespace + "/" + lease.Name}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, err
	}
	s.Until = untilOf(lease)
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

// Publish writes the annotation to the Lease. If the write of a leader election conflicts with this write, the elector retries.
func Publish(ctx context.Context, client kubernetes.Interface, namespace, name, annotation string) error {
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || lease.Annotations[wellknown.AnnotationServes] == annotation {
		return err
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, wellknown.AnnotationServes, annotation)
	_, err = client.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
