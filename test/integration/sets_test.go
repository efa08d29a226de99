// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterclient "open-cluster-management.io/api/client/cluster/clientset/versioned"

	"github.com/celset/celset/apis/setscores"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
	"github.com/celset/celset/test/internal/env"
)

// TestSchedulerPublishesSets checks that a scheduler publishes on a hub the numbers of sets that it counts for its metrics. The
// cluster is its own hub here.
func TestSchedulerPublishesSets(t *testing.T) {
	t.Parallel()
	const profile, managed = "celset-publishes", "cluster-of-sets"
	l := newLab(t, "sets", 1)
	driver := l.Ring(t, 8).Drivers()[0]
	l.CreateNamedClass(t, profile, driver, env.Definition("block", env.Contiguous(driver, 4)))
	require.NoError(t, hub.Install(t.Context(), cluster.RESTConfig()))
	_, err := client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: managed}}, metav1.CreateOptions{})
	require.NoError(t, err)
	cluster.StartScheduler(t, controlplane.SchedulerOptions{
		Name: profile, User: env.Scheduler.Name, Config: celsetConfig(t, profile, "{fragmentationInterval: 1s}"),
		Args: []string{"--hub-kubeconfig=" + cluster.Kubeconfig(), "--cluster-name=" + managed},
	})
	scores, err := clusterclient.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	env.Eventually(t, "the sets are published", func(ctx context.Context) (string, error) {
		score, err := scores.ClusterV1alpha1().AddOnPlacementScores(managed).Get(ctx, setscores.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), nil
		}
		for _, item := range score.Status.Scores {
			if item.Name == (setscores.Key{Class: profile, Constraint: "block", Devices: 4, State: setscores.Now}).String() && item.Value == 2 {
				return "", nil
			}
		}
		return "no 2 sets of 4 in a ring of 8", nil
	})
}
