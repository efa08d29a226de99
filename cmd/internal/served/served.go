// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

// Package served is what a celset-scheduler publishes of its configuration, for tools that answer as it would. It is
// an annotation of the Lease by which the scheduler was elected, so whoever may read Leases may read it, and the time
// of the last renewal says whether it still holds. A scheduler that elects no leader renews a Lease for it.
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

// maxLeases is how many Leases are read: namespaces of schedulers have few.
const maxLeases = 500

// Scheduler is what one celset-scheduler serves.
type Scheduler struct {
	// Lease is "namespace/name" of the Lease that has the annotation. Until is when it expires.
	Lease string    `json:"-"`
	Until time.Time `json:"-"`
	// Version is that of celset-scheduler.
	Version string `json:"version,omitempty"`
	// Constraints: the feature gate DRACELDeviceConstraint is on.
	Constraints bool `json:"constraints"`
	// Profiles are those with the plugin DynamicResourcesCEL.
	Profiles []Profile `json:"profiles"`
}

// Profile is a profile of the scheduler.
type Profile struct {
	// SchedulerName is what spec.schedulerName of pods names.
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

// Schedulers are those that have published what they serve.
type Schedulers []*Scheduler

// Read finds the schedulers in the Leases of a namespace, also those whose Lease has expired.
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
		// An older celset-scheduler publishes fewer arguments.
		configv1alpha1.SetDefaults(&s.Profiles[i].Args)
	}
	return s, nil
}

// Profile finds the profile that pods name, and the scheduler that has it. Both are nil if none has. Of several
// schedulers the one counts whose Lease expires last.
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

// Names are the profiles whose pods may use constraints, in ascending order.
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

// Publish writes the annotation to the Lease. The election that goes on meanwhile retries a write that conflicts.
func Publish(ctx context.Context, client kubernetes.Interface, namespace, name, annotation string) error {
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil || lease.Annotations[wellknown.AnnotationServes] == annotation {
		return err
	}
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, wellknown.AnnotationServes, annotation)
	_, err = client.CoordinationV1().Leases(namespace).Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
