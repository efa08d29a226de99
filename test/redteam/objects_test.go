// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/redteam"
)

func quantity(text string) *resource.Quantity { return ptr.To(resource.MustParse(text)) }

// claim returns a claim for count devices, with a constraint for each expression.
func claim(namespace, name string, count int64, expressions ...string) *resourceapi.ResourceClaim {
	parts := []env.Part{env.Request("r", driver, count)}
	for i, expression := range expressions {
		parts = append(parts, env.Constrained(fmt.Sprintf("c%d", i), expression))
	}
	result := env.Claim(name, parts...)
	result.Namespace = namespace
	return result
}

// claimOf returns a claim whose constraint is the case, repeated c.Constraints times.
func claimOf(namespace string, c redteam.Case) *resourceapi.ResourceClaim {
	var expressions []string
	for range max(1, c.Constraints) {
		expressions = append(expressions, c.Text)
	}
	return claim(namespace, c.Name, cmp.Or(c.Devices, 2), expressions...)
}

// preferring returns a claim whose preference is the case, repeated c.Constraints times. The claim has no constraint.
func preferring(namespace string, c redteam.Case) *resourceapi.ResourceClaim {
	result := claim(namespace, "preference-of-"+c.Name, cmp.Or(c.Devices, 2))
	for i := range max(1, c.Constraints) {
		env.Configure(env.Parameters(map[string]string{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.PreferenceKind, "name": fmt.Sprintf("p%d", i), "type": "Expression", "expression": c.Text,
		}))(&result.Spec.Devices)
	}
	return result
}

// selecting returns a claim whose request has the case as selector.
func selecting(namespace string, c redteam.Case) *resourceapi.ResourceClaim {
	result := claim(namespace, "selector-"+c.Name, 1)
	result.Spec.Devices.Requests[0].Exactly.Selectors = []resourceapi.DeviceSelector{env.Selector(c.Text)}
	return result
}

// pod returns a pod. If claim is not empty, the pod uses this claim.
func pod(namespace, name, profile, claim string) *corev1.Pod {
	result := env.Pod(name, profile)
	if claim != "" {
		result = env.Pod(name, profile, claim)
	}
	result.Namespace = namespace
	return result
}

// placementOf returns a Placement that selects clusters by the expression.
func placementOf(namespace, name, expression string) *clusterv1beta1.Placement {
	result := &clusterv1beta1.Placement{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{wellknown.AnnotationPlacement: "true"}},
	}
	result.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		CelSelector: clusterv1beta1.ClusterCelSelector{CelExpressions: []string{expression}},
	}}}
	// These prioritizers read the quantities in the reports of clusters.
	for _, name := range []string{"ResourceAllocatableCPU", "ResourceAllocatableMemory"} {
		result.Spec.PrioritizerPolicy.Configurations = append(result.Spec.PrioritizerPolicy.Configurations, clusterv1beta1.PrioritizerConfig{
			ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{Type: clusterv1beta1.ScoreCoordinateTypeBuiltIn, BuiltIn: name}, Weight: 1,
		})
	}
	return result
}

// remove deletes pods and their claims. It also deallocates the claims, because no kubelet and no controller manager runs.
func (l *lab) remove(ctx context.Context, namespace string, names ...string) error {
	for _, name := range names {
		if err := client.IgnoreNotFound(l.admin.Delete(ctx, pod(namespace, name, "", ""), client.GracePeriodSeconds(0))); err != nil {
			return err
		}
		if err := l.removeClaim(ctx, namespace, name); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) removeClaim(ctx context.Context, namespace, name string) error {
	for {
		err := l.tryToRemoveClaim(ctx, namespace, name)
		if err == nil || !isConflict(err) || ctx.Err() != nil {
			return err
		}
	}
}

func (l *lab) tryToRemoveClaim(ctx context.Context, namespace, name string) error {
	object := &resourceapi.ResourceClaim{}
	if err := l.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if object.Status.Allocation != nil || len(object.Status.ReservedFor) > 0 {
		object.Status = resourceapi.ResourceClaimStatus{}
		if err := l.admin.Status().Update(ctx, object); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	if len(object.Finalizers) > 0 {
		object.Finalizers = nil
		if err := l.admin.Update(ctx, object); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return client.IgnoreNotFound(l.admin.Delete(ctx, object))
}

const (
	// crowdNamespace is the namespace of the crowd's pods.
	crowdNamespace = "crowd"
	// evicting begins the names of shots whose pods may evict other pods.
	evicting = "evicting/"
	// urgent is the PriorityClass of pods that may evict the crowd.
	urgent = "urgent"

	crowdedNodes = 2
	// crowdedPods is the number of pods on each node of the crowd. With more pods, the search for victims would not be exact.
	crowdedPods = 16
	crowdLabel  = "crowded"
)

// crowdedOptions give nodes a taint, so that only pods of mallory and of the crowd run there.
var crowdedOptions = controlplane.NodeOptions{
	Static: true, Prefix: crowdLabel, Labels: map[string]string{crowdLabel: "true"},
	Taints: []corev1.Taint{{Key: crowdLabel, Effect: corev1.TaintEffectNoSchedule}},
}

// A crowd is a set of pods without priority that use all devices of some nodes. When mallory creates a pod with a priority, a
// scheduler has to choose victims among them.
type crowd struct {
	mutex sync.Mutex
	pods  []crowdPod
	// evicted is the number of the crowd's pods that were evicted.
	evicted int
}

// A crowdPod is a pod of the crowd, with the devices that it uses.
type crowdPod struct {
	name, node string
	devices    []topology.Device
	wasThere   bool
}

func (c *crowd) gather(nodes []string, ring topology.Topology) {
	each := len(ring.Devices) / crowdedPods
	for _, node := range nodes {
		for i := range crowdedPods {
			c.pods = append(c.pods, crowdPod{name: fmt.Sprintf("%s-%d", node, i), node: node, devices: ring.Devices[i*each : (i+1)*each]})
		}
	}
}

// fillCrowd creates pods of the crowd again that were evicted.
func (l *lab) fillCrowd(ctx context.Context) error {
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
	for i := range l.crowd.pods {
		s := &l.crowd.pods[i]
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

func (l *lab) take(ctx context.Context, s *crowdPod) error {
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

// evictingShot returns a shot that creates a pod with a priority and the claim, in a namespace without the webhook. The pod
// evicts pods of the crowd.
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
		return l.fillCrowd(ctx)
	}
	return s
}
