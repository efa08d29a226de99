// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/test/internal/env"
)

// These tests check what users with access to one namespace can learn about objects in other namespaces. The scheduler's
// messages about their pods must not reveal any. The command line must not either, because it has only the rights of its
// caller.

func TestPodIsNotToldOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	l, neighbour := newLab(t, "tenant", 1), newLab(t, "neighbour", 0)
	ring := l.Ring(t, 8)
	driver := ring.Drivers()[0]
	neighbour.Occupy(t, l.Nodes[0], ring, "mla-2")
	own := l.Occupy(t, l.Nodes[0], ring, "mla-5")

	l.Run(t, "some", env.CelsetProfile, env.Request("mla", driver, 4), env.Constrained("ring4", env.Contiguous(driver, 4)))
	l.Run(t, "all", env.CelsetProfile, env.Request("mla", driver, 8), env.Constrained("ring8", env.Contiguous(driver, 8)))
	l.RequireRefused(t, "all", "in the way: claim "+l.Namespace+"/"+own+" with mla-5, a claim of another namespace with mla-2")
	l.RequireRefused(t, "some", "in the way: ")
	for _, name := range []string{"some", "all"} {
		pod := l.Pod(t, name)
		notes, err := l.Notes(t.Context(), pod, "FailedScheduling")
		require.NoError(t, err)
		for _, condition := range pod.Status.Conditions {
			notes = append(notes, condition.Message)
		}
		require.NotContains(t, strings.Join(notes, "\n"), neighbour.Namespace)
	}
}

// tenant creates a user with the usual rights in the lab's namespace, and read access to cluster-scoped objects.
func (l *lab) tenant(t *testing.T) string {
	t.Helper()
	user := "tenant-of-" + l.Namespace
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	read := []string{"get", "list"}
	_, err := client().RbacV1().Roles(l.Namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{resourceapi.GroupName}, Resources: []string{"resourceclaims", "resourceclaimtemplates"}, Verbs: read},
			{APIGroups: []string{corev1.GroupName}, Resources: []string{"pods"}, Verbs: read},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client().RbacV1().RoleBindings(l.Namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{resourceapi.GroupName}, Resources: []string{"deviceclasses", "resourceslices"}, Verbs: read},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	env.CleanUp(t, func(ctx context.Context) error {
		return client().RbacV1().ClusterRoles().Delete(ctx, user, metav1.DeleteOptions{})
	})
	_, err = client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	env.CleanUp(t, func(ctx context.Context) error {
		return client().RbacV1().ClusterRoleBindings().Delete(ctx, user, metav1.DeleteOptions{})
	})
	return user
}

func TestCommandLineShowsWhatItsCallerMayRead(t *testing.T) {
	t.Parallel()
	l, neighbour := newLab(t, "caller", 1), newLab(t, "unseen", 0)
	ring := l.Ring(t, 8)
	driver := ring.Drivers()[0]
	neighbour.Occupy(t, l.Nodes[0], ring, "mla-2")
	own := l.Occupy(t, l.Nodes[0], ring, "mla-5")
	l.CreateClaim(t, "all", env.Request("mla", driver, 8), env.Constrained("ring8", env.Contiguous(driver, 8)))
	user := l.tenant(t)

	// The administrator sees the claims of both namespaces.
	explained := l.celset(t, cli.ExitNegative, nil, "explain", "claim/all", "--node", l.Nodes[0])
	require.Contains(t, explained, "in the way: claim "+neighbour.Namespace+"/")
	require.Contains(t, explained, "in the way: claim "+l.Namespace+"/"+own)

	for command, want := range map[string]string{
		"explain":  "in the way: claim " + l.Namespace + "/" + own,
		"simulate": "request mla: too few matching devices are free (7 of 8 requested)",
	} {
		var stdout, stderr bytes.Buffer
		args := []string{
			command, "claim/all", "--node", l.Nodes[0], "--as=" + user,
			"--kubeconfig=" + cluster.Kubeconfig(), "--namespace=" + l.Namespace,
		}
		streams := genericiooptions.IOStreams{In: nil, Out: &stdout, ErrOut: &stderr}
		require.Equal(t, cli.ExitNegative, cli.Run(t.Context(), args, streams), "%s%s", &stdout, &stderr)
		require.Contains(t, stdout.String(), want)
		require.Contains(t, stderr.String(), "warning: the claims of other namespaces can't be read, so their devices are shown as free: ")
		require.NotContains(t, stdout.String()+stderr.String(), neighbour.Namespace)
	}
}

// TestOtherNamespacesGoFirst creates many pods in one namespace whose searches take the maximum time. Then it creates pods in
// another namespace. The scheduler must serve the later pods without waiting for the first ones.
func TestOtherNamespacesGoFirst(t *testing.T) {
	t.Parallel()
	const hostile, others = 40, 10
	bad, good := newLab(t, "greedy", 1), newLab(t, "modest", 1)
	badDriver, goodDriver := bad.Ring(t, 32).Drivers()[0], good.Ring(t, 32).Drivers()[0]
	// The expression is false for all devices, because a square never leaves the remainder 3 when divided by 7. The search
	// can't derive that, so it tries until its budget is used up.
	sum := fmt.Sprintf("devices.map(d, d.attributes[%q].index).sum()", badDriver)
	for i := range hostile {
		name := fmt.Sprintf("greedy-%d", i)
		bad.Run(t, name, env.CelsetProfile, env.Request("mla", badDriver, 16), env.Constrained("square", fmt.Sprintf("(%[1]s * %[1]s) %% 7 == 3 && %[2]d >= 0", sum, i)))
	}
	bad.RequireRefused(t, "greedy-0")

	var took []time.Duration
	for i := range others {
		name := fmt.Sprintf("modest-%d", i)
		start := time.Now()
		good.Run(t, name, env.CelsetProfile, env.Request("mla", goodDriver, 2), env.Constrained("pair", env.Contiguous(goodDriver, 2)))
		good.EventuallyPod(t, name, "scheduled", func(_ context.Context, pod *corev1.Pod) (bool, error) { return pod.Spec.NodeName != "", nil })
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	t.Logf("pods of the other namespace were scheduled within %v, half of them within %v", took[others-1], took[others/2])
	if cases.Nightly() {
		require.Less(t, took[others/2], 5*time.Second)
	}

	// The pods of the first namespace have no devices, and the scheduler has delayed some of them.
	env.Eventually(t, "greedy pods wait for their turn", func(ctx context.Context) (string, error) {
		pods, err := client().CoreV1().Pods(bad.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		require.Len(t, pods.Items, hostile)
		putOff := 0
		for _, pod := range pods.Items {
			require.Empty(t, pod.Spec.NodeName)
			if env.IsRefused(&pod, "pods of namespace "+bad.Namespace+" took more than 20 percent of the scheduler's time") ||
				env.IsRefused(&pod, "scheduling attempts took too much time ", "the next attempt is at ") {
				putOff++
			}
		}
		if putOff == 0 {
			return "none does", nil
		}
		t.Logf("%d of %d greedy pods were put off", putOff, hostile)
		return "", nil
	})
}

// TestClaimThatBacksOffIsTriedAgain creates a claim whose search exceeds the budget. No events occur in the cluster. The
// scheduler must retry with growing delays. The condition of the pod keeps the error. A second pod of the same claim is not
// tried; its condition states the number of tries of the claim.
func TestClaimThatBacksOffIsTriedAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t, "again", 1)
	driver := l.Ring(t, 16).Drivers()[0]
	l.Run(t, "again", frugalProfile, env.Request("mla", driver, 4),
		env.Constrained("unread", fmt.Sprintf("devices.slice(0, 1).map(d, d.attributes[%q].index).size() == 2", driver)))
	const budget = "the evaluations together exceed the cost budget of "
	l.EventuallyPod(t, "again", "over budget", func(_ context.Context, pod *corev1.Pod) (bool, error) { return env.IsRefused(pod, budget), nil })
	tried := regexp.MustCompile(`scheduling attempts took too much time (\d+) times in a row: the next attempt is at .*` + budget)
	for late, times := 0, 0; times < 5; late++ {
		require.Less(t, late, 20, "tried %d times", times)
		name := fmt.Sprintf("late-%d", late)
		l.CreatePod(t, name, frugalProfile, "again")
		l.EventuallyPod(t, name, "told", func(_ context.Context, pod *corev1.Pod) (bool, error) {
			for _, condition := range pod.Status.Conditions {
				if found := tried.FindStringSubmatch(condition.Message); found != nil {
					now, err := strconv.Atoi(found[1])
					require.GreaterOrEqual(t, now, times)
					times = now
					return true, err
				}
			}
			// The scheduler may also have tried the second pod, if the claim's delay had just ended.
			return env.IsRefused(pod, budget), nil
		})
	}
	require.True(t, env.IsRefused(l.Pod(t, "again"), budget))
}
