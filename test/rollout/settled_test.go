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
	// wakePeriod is longer than a scheduler needs for the pods that were woken.
	wakePeriod = 5 * time.Second

	// remindPeriod is longer than the controller manager needs for a pod that it is told of.
	remindPeriod = 20 * time.Second
)

// requireSettled waits until there is nothing left to do for the scheduler, and it has
// done all of it right: see picture. It returns the claims.
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
		// Claims that nobody uses may still be tidied up, so that the ledger can be
		// ahead of the list, too.
		return w.ledger.Difference(claims), nil
	})
	require.NoError(t, w.ledger.Entries().Err())
	return claims
}

// picture is all pods and claims of a workload.
type picture struct {
	*workload
	pods   map[types.UID]*corev1.Pod
	claims map[string]*resourceapi.ResourceClaim
	owners map[string]string // by device, "driver/pool/name"
}

func (w *workload) picture(pods map[types.UID]*corev1.Pod, claims []resourceapi.ResourceClaim) *picture {
	p := &picture{workload: w, pods: pods, claims: map[string]*resourceapi.ResourceClaim{}, owners: map[string]string{}}
	for i := range claims {
		p.claims[claims[i].Name] = &claims[i]
	}
	return p
}

// complaint is empty if every pod has what it wants or can't have it, and claims have
// devices for pods that have a node only. (There are two exceptions, see keepsDevices and
// mayBeOverlooked.)
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

// keepsDevices tells whether a claim may have devices that it has no use for. That is
// how Kubernetes is: if a pod can't be bound, the scheduler takes it from the claim,
// and leaves the claim its devices for the next try. If the pod is deleted then, nobody
// takes them back until the claim is deleted as well or another pod wants it.
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

// claimsOf names the claims of a pod, unless they are not there yet.
func (p *picture) claimsOf(pod *corev1.Pod) (names []string, waiting string) {
	if kindNamed(pod.Labels[kindLabel]).template == "" {
		switch status := pod.Status.ExtendedResourceClaimStatus; {
		case status != nil && pod.Spec.NodeName == "" && p.claims[status.ResourceClaimName] == nil:
			// It was given back when the pod could not be bound.
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

// isServed tells whether the claim has devices on the pod's node and knows the pod.
func isServed(pod *corev1.Pod, claim *resourceapi.ResourceClaim) bool {
	return claim.Status.Allocation != nil &&
		claim.Status.Allocation.Devices.Results[0].Pool == pod.Spec.NodeName &&
		slices.ContainsFunc(claim.Status.ReservedFor, func(user resourceapi.ResourceClaimConsumerReference) bool { return user.UID == pod.UID })
}

// complaintAboutWaiting is about a pod without node.
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

// mayBeOverlooked tells whether a pod may wait for what it could have. Upstream's plugin
// does not notice when devices in flight are free again, see
// TestNobodyWaitsForDevicesOfAPodThatIsGone, and the stock profile has that.
func (p *picture) mayBeOverlooked(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == env.StockProfile && refusalOf(pod) != ""
}

// complaintAboutOverlooked is about the pods that complaint passes over. They have to be
// woken, but then they must get what there is.
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

// wake lets schedulers try all pods again that they have refused: a node's label could
// make a difference to them.
func (w *workload) wake(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{"woken":"%d"}}}`, time.Now().UnixNano())
	_, err := client().CoreV1().Nodes().Patch(ctx, w.nodes[0], types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// remind has the controller manager look again at claims that are reserved for pods that are gone, by a change that means
// nothing. It looks at a claim when that is changed, and leaves it to a pod that it does not know and the API server
// does; the end of that pod is to bring it back. If its watch of pods is too old, and it lists them anew when the pod is
// gone, it is told neither of its beginning nor of its end.
func (p *picture) remind(ctx context.Context) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{"reminded":"%d"}}}`, time.Now().UnixNano())
	for name, claim := range p.claims {
		if !slices.ContainsFunc(claim.Status.ReservedFor, func(user resourceapi.ResourceClaimConsumerReference) bool { return p.pods[user.UID] == nil }) {
			continue
		}
		_, err := client().ResourceV1().ResourceClaims(p.namespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		// It may be gone by now.
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// free names the devices of a node for a kind of pods that nobody has.
func (p *picture) free(node string, k *kind) []string {
	var free []string
	for _, device := range k.devices.Devices {
		if p.owners[strings.Join([]string{device.Driver, node, device.Name}, "/")] == "" {
			free = append(free, device.Name)
		}
	}
	return free
}

// refusalOf is what the scheduler says about a pod that it has no node for.
func refusalOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Message
		}
	}
	return ""
}
