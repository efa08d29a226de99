// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/topology"
)

const (
	// crowdNamespace has the pods of the crowd.
	crowdNamespace = "crowd"
	// evicting is what the names of shots begin with for which pods may be evicted.
	evicting = "evicting/"
	// urgent is the PriorityClass of pods for which those of the crowd have to go.
	urgent = "urgent"

	crowdedNodes = 2
	// crowdedPods are as many on each node as an exact search for victims looks at.
	crowdedPods = 16
	crowdLabel  = "crowded"
)

// crowdedOptions keep everybody else away: the crowd is in nobody's way but mallory's.
var crowdedOptions = controlplane.NodeOptions{
	Static: true, Prefix: crowdLabel, Labels: map[string]string{crowdLabel: "true"},
	Taints: []corev1.Taint{{Key: crowdLabel, Effect: corev1.TaintEffectNoSchedule}},
}

// crowd is pods of no priority that together have all devices of some nodes: for each of mallory's pods
// with a priority a scheduler has to find out who has to go.
type crowd struct {
	mutex sync.Mutex
	seats []seat
	// evicted is how many had to go so far.
	evicted int
}

// seat is one of them, with its devices.
type seat struct {
	name, node string
	devices    []topology.Device
	wasThere   bool
}

func (c *crowd) gather(nodes []string, ring topology.Topology) {
	each := len(ring.Devices) / crowdedPods
	for _, node := range nodes {
		for i := range crowdedPods {
			c.seats = append(c.seats, seat{name: fmt.Sprintf("%s-%d", node, i), node: node, devices: ring.Devices[i*each : (i+1)*each]})
		}
	}
}

// seat makes those of the crowd that are not there.
func (l *lab) seat(ctx context.Context) error {
	l.crowd.mutex.Lock()
	defer l.crowd.mutex.Unlock()
	there := &corev1.PodList{}
	if err := l.admin.List(ctx, there, client.InNamespace(crowdNamespace)); err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range there.Items {
		names[there.Items[i].Name] = true
	}
	for i := range l.crowd.seats {
		s := &l.crowd.seats[i]
		if names[s.name] {
			continue
		}
		if s.wasThere {
			l.crowd.evicted++
		}
		if err := l.removeClaim(ctx, crowdNamespace, s.name); err != nil {
			return err
		}
		if err := l.take(ctx, s); err != nil {
			return err
		}
		s.wasThere = true
	}
	return nil
}

func (l *lab) take(ctx context.Context, s *seat) error {
	object := claim(crowdNamespace, s.name, int64(len(s.devices)))
	object.Finalizers = []string{resourceapi.Finalizer}
	if err := l.admin.Create(ctx, object); err != nil {
		return err
	}
	user := pod(crowdNamespace, s.name, "celset-scheduler", s.name)
	user.Spec.NodeName, user.Spec.TerminationGracePeriodSeconds = s.node, ptr.To[int64](0)
	if err := l.admin.Create(ctx, user); err != nil {
		return err
	}
	object.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: s.name, UID: user.UID}}
	object.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range s.devices {
		object.Status.Allocation.Devices.Results = append(object.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "r", Driver: driver, Pool: s.node, Device: device.Name,
		})
	}
	return l.admin.Status().Update(ctx, object)
}

// evictingShot is a pod for which the crowd has to make room, with a claim that no webhook has seen.
func (l *lab) evictingShot(name string, claim client.Object) shot {
	object := pod(unchecked, claim.GetName(), "celset-scheduler", claim.GetName())
	object.Spec.PriorityClassName = urgent
	object.Spec.NodeSelector = crowdedOptions.Labels
	object.Spec.Tolerations = []corev1.Toleration{{Key: crowdLabel, Operator: corev1.TolerationOpExists}}
	s := l.podShot(name, object, claim)
	undo := s.undo
	s.undo = func(ctx context.Context) error {
		if err := undo(ctx); err != nil {
			return err
		}
		return l.seat(ctx)
	}
	return s
}
