// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/ledger"
)

const (
	// wakePeriod is the time within which a scheduler must have tried pods again after wake.
	wakePeriod = 5 * time.Second

	// remindPeriod is the time within which the controller manager must have processed a pod after an event.
	remindPeriod = 20 * time.Second
)

// requireSettled waits until the scheduler has no work left and all pods and claims are as they must be (see
// picture.complaint). It returns the claims.
func (w *workload) requireSettled(t *testing.T) []resourceapi.ResourceClaim {
	t.Helper()
	var claims []resourceapi.ResourceClaim
	var woken time.Time
	reminded := time.Now()
	env.Eventually(t, "all pods are served that can be, and nobody else has devices", func(ctx context.Context) (string, error) {
		var pods map[types.UID]*corev1.Pod
		var err error
		if pods, claims, err = w.list(ctx); err == nil {
			err = w.ledger.Entries().Err()
		}
		if err != nil {
			return "", err
		}
		p := w.picture(pods, claims)
		if complaint := p.complaint(); complaint != "" {
			if time.Since(reminded) > remindPeriod {
				reminded = time.Now()
				err = p.remind(ctx)
			}
			return complaint, err
		}
		if complaint := p.complaintAboutOverlooked(); complaint != "" {
			if time.Since(woken) > wakePeriod {
				woken = time.Now()
				err = w.wake(ctx)
			}
			return complaint, err
		}
		// The ledger may already have seen deletions of unused claims, which the list does not show.
		return w.ledger.Difference(claims), nil
	})
	require.NoError(t, w.ledger.Entries().Err())
	return claims
}

// A picture holds all pods and claims of a workload at one time.
type picture struct {
	*workload
	pods   map[types.UID]*corev1.Pod
	claims map[string]*resourceapi.ResourceClaim
	owners map[string]string // name of the claim that has the device "driver/pool/name"
}

func (w *workload) picture(pods map[types.UID]*corev1.Pod, claims []resourceapi.ResourceClaim) *picture {
	p := &picture{workload: w, pods: pods, claims: map[string]*resourceapi.ResourceClaim{}, owners: map[string]string{}}
	for i := range claims {
		p.claims[claims[i].Name] = &claims[i]
	}
	return p
}

// complaint returns a mistake in the picture, or "". Each pod must be bound and have its devices, unless no set of free devices
// fits. Only claims of bound pods may have devices. Two exceptions are keepsDevices and mayBeOverlooked.
func (p *picture) complaint() string {
	for _, claim := range p.claims {
		if complaint := p.complaintAboutClaim(claim); complaint != "" {
			return fmt.Sprintf("claim %s %s", claim.Name, complaint)
		}
	}
	for _, pod := range p.pods {
		if complaint := p.complaintAboutPod(pod); complaint != "" {
			return fmt.Sprintf("pod %s %s", pod.Name, complaint)
		}
	}
	return ""
}

func (p *picture) complaintAboutClaim(claim *resourceapi.ResourceClaim) string {
	for _, user := range claim.Status.ReservedFor {
		switch pod := p.pods[user.UID]; {
		case pod == nil:
			return fmt.Sprintf("is reserved for pod %s, which is gone", user.Name)
		case pod.Spec.NodeName == "":
			return fmt.Sprintf("is reserved for pod %s, which has no node", user.Name)
		}
	}
	for _, owner := range claim.OwnerReferences {
		if p.pods[owner.UID] == nil {
			return fmt.Sprintf("is left of pod %s", owner.Name)
		}
	}
	if len(claim.OwnerReferences) == 0 && p.live[claim.Name] == nil && !p.freed.Has(claim.Name) {
		return "should be gone"
	}
	if claim.Status.Allocation == nil {
		return ""
	}
	if len(claim.Status.ReservedFor) == 0 && !p.keepsDevices(claim.Name) {
		return "has devices and no user"
	}
	for _, device := range ledger.DevicesOf(claim) {
		if owner := p.owners[device]; owner != "" {
			return fmt.Sprintf("has device %s, which claim %s has", device, owner)
		}
		p.owners[device] = claim.Name
	}
	return judge(claim)
}

// keepsDevices reports whether a claim may have devices although no pod uses it. Kubernetes has this behaviour: if a pod can't
// be bound, the scheduler removes the reservation, and keeps the allocation for the next attempt. If the pod is then deleted,
// the claim stays allocated until it is deleted or another pod uses it.
func (p *picture) keepsDevices(claim string) bool {
	return p.freed.Has(claim) && slices.ContainsFunc(p.gates, func(g *gate) bool { return g.hasUnreserved(claim) })
}

func (p *picture) complaintAboutPod(pod *corev1.Pod) string {
	names, waiting := p.claimsOf(pod)
	if waiting != "" {
		return waiting
	}
	for _, name := range names {
		claim := p.claims[name]
		if claim == nil {
			return fmt.Sprintf("has lost claim %s", name)
		}
		if pod.Spec.NodeName == "" && claim.Status.Allocation != nil {
			return fmt.Sprintf("has no node, but the devices of claim %s", name)
		}
		if pod.Spec.NodeName != "" && !isServed(pod, claim) {
			return fmt.Sprintf("is on node %s without the devices of claim %s", pod.Spec.NodeName, name)
		}
	}
	if pod.Spec.NodeName == "" {
		return p.complaintAboutWaiting(pod)
	}
	return ""
}

// claimsOf returns the names of the claims that a pod uses. If one of them does not exist yet, waiting is its name.
func (p *picture) claimsOf(pod *corev1.Pod) (names []string, waiting string) {
	if kindNamed(pod.Labels[kindLabel]).template == "" {
		switch status := pod.Status.ExtendedResourceClaimStatus; {
		case status != nil && pod.Spec.NodeName == "" && p.claims[status.ResourceClaimName] == nil:
			// The scheduler has deleted the claim because it could not bind the pod.
			return nil, ""
		case status != nil:
			return []string{status.ResourceClaimName}, ""
		case pod.Spec.NodeName != "":
			return nil, "is bound without a claim for its extended resource"
		}
		return nil, ""
	}
	name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[0])
	if err != nil {
		return nil, err.Error()
	}
	return []string{*name}, ""
}

// isServed reports whether the claim has devices on the pod's node and is reserved for the pod.
func isServed(pod *corev1.Pod, claim *resourceapi.ResourceClaim) bool {
	return claim.Status.Allocation != nil &&
		claim.Status.Allocation.Devices.Results[0].Pool == pod.Spec.NodeName &&
		slices.ContainsFunc(claim.Status.ReservedFor, func(user resourceapi.ResourceClaimConsumerReference) bool { return user.UID == pod.UID })
}

// complaintAboutWaiting returns a mistake if a pod waits although it could be bound, or "".
func (p *picture) complaintAboutWaiting(pod *corev1.Pod) string {
	if p.mayBeOverlooked(pod) {
		return ""
	}
	if complaint := p.complaintAboutFree(pod); complaint != "" {
		return complaint
	}
	if refusalOf(pod) == "" {
		return "waits, and was not told why"
	}
	return ""
}

func (p *picture) complaintAboutFree(pod *corev1.Pod) string {
	for _, node := range p.nodes {
		if free := p.free(node, kindNamed(pod.Labels[kindLabel])); kindNamed(pod.Labels[kindLabel]).fits(free) {
			return fmt.Sprintf("waits, although node %s has a set for it among %v: %s", node, free, refusalOf(pod))
		}
	}
	return ""
}

// mayBeOverlooked reports whether a pod may wait although devices for it are available. Upstream's plugin in the stock profile
// may not notice that devices of a pending allocation are released. See TestNobodyWaitsForDevicesOfAPodThatIsGone.
func (p *picture) mayBeOverlooked(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == env.StockProfile && refusalOf(pod) != ""
}

// complaintAboutOverlooked is like complaint for the pods that mayBeOverlooked excludes. After wake, these pods must have got
// available devices, too.
func (p *picture) complaintAboutOverlooked() string {
	for _, pod := range p.pods {
		if pod.Spec.NodeName == "" && p.mayBeOverlooked(pod) {
			if complaint := p.complaintAboutFree(pod); complaint != "" {
				return fmt.Sprintf("pod %s %s", pod.Name, complaint)
			}
		}
	}
	return ""
}

// wake makes schedulers try all unschedulable pods again. It changes a label of a node, because the label could make a pod fit.
func (w *workload) wake(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{"woken":"%d"}}}`, time.Now().UnixNano())
	_, err := client().CoreV1().Nodes().Patch(ctx, w.nodes[0], types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// remind makes the controller manager check again all claims that are reserved for deleted pods. It makes a change without an
// effect to each of these claims, because the controller checks a claim when the claim changes. The need for it is a race in
// the controller: if a pod exists in the API server but not yet in the controller's cache, the controller waits for an event
// about the pod. If the watch expires at that time, and the pod is deleted before the next list, there is no such event.
func (p *picture) remind(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{"reminded":"%d"}}}`, time.Now().UnixNano())
	for name, claim := range p.claims {
		if !slices.ContainsFunc(claim.Status.ReservedFor, func(user resourceapi.ResourceClaimConsumerReference) bool { return p.pods[user.UID] == nil }) {
			continue
		}
		_, err := client().ResourceV1().ResourceClaims(p.namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		// It is no error if the claim has been deleted.
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// free returns the names of the node's free devices that a kind of pods can use.
func (p *picture) free(node string, k *kind) []string {
	var free []string
	for _, device := range k.devices.Devices {
		if p.owners[strings.Join([]string{device.Driver, node, device.Name}, "/")] == "" {
			free = append(free, device.Name)
		}
	}
	return free
}

// refusalOf returns the message of the pod's condition PodScheduled, or "".
func refusalOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message
		}
	}
	return ""
}
