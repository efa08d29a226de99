// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// until polls until done returns true. It fails after a minute.
func until(ctx context.Context, done func(context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, done)
}

func (d *demo) pods(ctx context.Context, options ...client.ListOption) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := d.client.List(ctx, &list, append(options, client.InNamespace(namespace))...)
	return list.Items, err
}

// running waits until the selector selects exactly n pods and all of them run.
func (d *demo) running(ctx context.Context, n int, selected client.ListOption) (pods []corev1.Pod, err error) {
	err = until(ctx, func(ctx context.Context) (bool, error) {
		if pods, err = d.pods(ctx, selected); err != nil {
			return false, err
		}
		waits := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning })
		return len(pods) == n && !waits, nil
	})
	if err != nil {
		err = fmt.Errorf("wait until %d pods run: %w", n, err)
		for i := range pods {
			err = fmt.Errorf("%w\npod %s: %s %s", err, pods[i].Name, pods[i].Status.Phase, whyPending(&pods[i]))
		}
	}
	return pods, err
}

// named selects the pod with the name.
func named(name string) client.ListOption { return client.MatchingFields{"metadata.name": name} }

// waiting waits until a pod, whose name begins with prefix, is unschedulable with a message that contains text. It returns the
// message.
func (d *demo) waiting(ctx context.Context, prefix, text string) (message string, err error) {
	err = until(ctx, func(ctx context.Context) (bool, error) {
		pods, err := d.pods(ctx)
		for i := range pods {
			if strings.HasPrefix(pods[i].Name, prefix) {
				message = whyPending(&pods[i])
			}
			if strings.Contains(message, text) {
				return true, nil
			}
		}
		return false, err
	})
	if err != nil {
		return "", fmt.Errorf("wait until pod %s is refused with %q: %w (last: %q)", prefix, text, err, message)
	}
	return message, nil
}

// whyPending returns the message of the pod's condition PodScheduled, or "" if the pod is scheduled.
func whyPending(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

// owners maps each allocated device of a node to the name of the pod that uses it. If no pod uses the claim, the value is the
// name of the claim.
func (d *demo) owners(ctx context.Context, node string) (map[string]string, error) {
	var claims resourceapi.ResourceClaimList
	if err := d.client.List(ctx, &claims, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	owners := map[string]string{}
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		owner := claim.Name
		for _, consumer := range claim.Status.ReservedFor {
			owner = consumer.Name
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.Pool == node {
				owners[result.Device] = owner
			}
		}
	}
	return owners, nil
}

// decision holds a Placement and the clusters in its PlacementDecisions.
type decision struct {
	placement *clusterv1beta1.Placement
	// objects is the number of PlacementDecision objects.
	objects  int
	clusters []clusterv1beta1.ClusterDecision
}

// decided waits until the PlacementDecisions are for the Placement's current spec and done returns true.
func (d *demo) decided(ctx context.Context, namespace, name string, done func(decision) bool) (got decision, err error) {
	err = until(ctx, func(ctx context.Context) (bool, error) {
		got = decision{placement: &clusterv1beta1.Placement{}}
		if err := d.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, got.placement); err != nil {
			return false, err
		}
		var list clusterv1beta1.PlacementDecisionList
		if err := d.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{clusterv1beta1.PlacementLabel: name}); err != nil {
			return false, err
		}
		got.objects = len(list.Items)
		for _, object := range list.Items {
			got.clusters = append(got.clusters, object.Status.Decisions...)
		}
		status := got.placement.Status
		satisfied := meta.FindStatusCondition(status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
		return satisfied != nil && satisfied.ObservedGeneration == got.placement.Generation &&
			int(status.NumberOfSelectedClusters) == len(got.clusters) && done(got), nil
	})
	if err != nil {
		return got, fmt.Errorf("wait for the decision of Placement %s: %w (last: %+v)", name, err, got.placement.Status)
	}
	return got, nil
}

// message returns the message of the condition of that type if its status is True.
func (d decision) message(kind string) string {
	c := meta.FindStatusCondition(d.placement.Status.Conditions, kind)
	if c == nil || c.Status != "True" {
		return ""
	}
	return c.Message
}
