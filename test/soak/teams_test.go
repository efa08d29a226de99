// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/test/internal/env"
)

// Several pods share a claim in two cases: the pods of a team, and the replicas of a ReplicaSet. When some of them are evicted,
// new pods that use the claim are created before the claim is deallocated.

const (
	// replicasPrefix begins the names of ReplicaSets and of their pods.
	replicasPrefix = "web-"
	// nodesPerReplicaSet is the number of nodes divided by the number of ReplicaSets.
	nodesPerReplicaSet = 5
	// idleClaim is the time after which a claim that no pod uses is deleted.
	idleClaim = 10 * time.Second
)

// createClaim creates a claim for several pods, and returns its name.
func (r *ranked) createClaim(ctx context.Context, rank *rank, k *kind) (name string, err error) {
	r.made++
	claim := k.claim(fmt.Sprintf("team-%s-%s-%d", rank.name, k.name, r.made))
	err = insist(ctx, func() error {
		_, err := r.client.ResourceV1().ResourceClaims(r.namespace).Create(ctx, claim, metav1.CreateOptions{})
		return err
	})
	return claim.Name, err
}

// dropClaims deletes the claims of teams whose pods have all ended at least idleClaim ago.
func (r *ranked) dropClaims(ctx context.Context) error {
	for _, claim := range r.idleClaims(time.Now()) {
		err := insist(ctx, func() error {
			return r.client.ResourceV1().ResourceClaims(r.namespace).Delete(ctx, claim, metav1.DeleteOptions{})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// idleClaims returns the names of the claims to delete, and removes them from teams.
func (r *ranked) idleClaims(now time.Time) (idle []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := map[string]bool{}
	for _, l := range r.again {
		waiting[l.claim] = true
	}
	for claim, team := range r.teams {
		used := slices.ContainsFunc(team, func(l *life) bool {
			return !l.isOver() || now.Sub(l.deleted) < idleClaim || now.Sub(l.evicted) < idleClaim
		})
		if !used && !waiting[claim] {
			idle = append(idle, claim)
			delete(r.teams, claim)
		}
	}
	slices.Sort(idle)
	return idle
}

// createReplicaSets creates ReplicaSets of the lowest priority. Each has two pods that use one claim.
func (r *ranked) createReplicaSets(t *testing.T) {
	t.Helper()
	k := kindNamed("plain")
	for i := range r.nodes / nodesPerReplicaSet {
		name := fmt.Sprint(replicasPrefix, i)
		_, err := r.client.ResourceV1().ResourceClaims(r.namespace).Create(t.Context(), k.claim(name), metav1.CreateOptions{})
		require.NoError(t, err)
		pod := env.Pod("", k.profile, name)
		pod.Labels = map[string]string{"app": name}
		pod.Spec.PriorityClassName = lowest().name
		pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(grace.Seconds()))
		_, err = r.client.AppsV1().ReplicaSets(r.namespace).Create(t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

func lowest() *rank { return ranks[len(ranks)-1] }

// replicaLife returns the life of a pod that a ReplicaSet has created.
func replicaLife(pod *corev1.Pod) *life {
	return &life{name: pod.Name, rank: lowest(), kind: kindNamed("plain"), created: pod.CreationTimestamp.Time, claim: pod.Labels["app"], controlled: true}
}

// dissolve deletes the ReplicaSets and the shared claims, and removes finalizers, so that all pods can be deleted.
func (r *ranked) dissolve(t *testing.T) {
	t.Helper()
	ctx, all := t.Context(), metav1.ListOptions{}
	require.NoError(t, r.client.AppsV1().ReplicaSets(r.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	pods, err := r.client.CoreV1().Pods(r.namespace).List(ctx, all)
	require.NoError(t, err)
	for i := range pods.Items {
		if len(pods.Items[i].Finalizers) == 0 {
			continue
		}
		_, err := r.client.CoreV1().Pods(r.namespace).Patch(ctx, pods.Items[i].Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
	}
	require.NoError(t, r.client.ResourceV1().ResourceClaims(r.namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
}

// insist repeats a request until the API server answers. An attempt without a response may have succeeded, so "already exists"
// and "not found" are no errors.
func insist(ctx context.Context, request func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, env.Patience, true, func(context.Context) (bool, error) {
		last = request()
		switch {
		case last == nil, apierrors.IsNotFound(last), apierrors.IsAlreadyExists(last):
			return true, nil
		case isFinal(last):
			return false, last
		}
		return false, nil
	})
	if wait.Interrupted(err) && last != nil {
		return last
	}
	return err
}

// isFinal reports whether a repetition of the request would return the same error.
func isFinal(err error) bool {
	reason := apierrors.ReasonForError(err)
	return reason != metav1.StatusReasonUnknown && !slices.Contains([]metav1.StatusReason{
		metav1.StatusReasonInternalError, metav1.StatusReasonServerTimeout, metav1.StatusReasonServiceUnavailable, metav1.StatusReasonTimeout, metav1.StatusReasonTooManyRequests,
	}, reason) && !isStarting(err)
}

// isStarting reports whether an API server has rejected the request only because it has not loaded the RBAC rules yet.
func isStarting(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "not yet ready to handle request")
}
