// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/ledger"
	"github.com/celset/celset/test/realnode"
)

const (
	// enabledEnv names the environment variable that turns the tests on.
	enabledEnv = "CELSET_E2E"
	// ciEnv names the environment variable that makes unavailable tests fail instead of being skipped.
	ciEnv = "CI"

	namespace = "default"
)

// cluster is the cluster of all tests. The tests run one after the other, because each needs all devices of the node.
var cluster struct {
	*env.Env
	node    *realnode.Node
	drivers map[string]*controlplane.Process
	ledger  *claimsLedger
	// life is the context of processes that run until the end of all tests.
	life context.Context
}

func client() kubernetes.Interface { return cluster.Client() }

func TestMain(m *testing.M) {
	if os.Getenv(enabledEnv) == "" {
		fmt.Printf("skipped: set %s, or run \"make e2e\"\n", enabledEnv)
		return
	}
	if err := realnode.Unavailable(); err != nil {
		fmt.Printf("skipped: %v\n", err)
		if os.Getenv(ciEnv) == "true" {
			fmt.Printf("with %s=true, that is a failure\n", ciEnv)
			os.Exit(1)
		}
		return
	}
	env.Main(m, env.NoLeaks, startCluster)
}

// startCluster starts the control plane, the node, the drivers and the ledger. The directory is the same in all runs, so
// startCluster removes the data of an earlier run. The node removes its processes, mounts and cgroups.
func startCluster(t testing.TB) {
	dir := filepath.Join(os.TempDir(), "celset-e2e")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "etcd")))
	t.Cleanup(func() {
		require.NoError(t, nothingLeft(dir, filepath.Join(dir, realnode.DefaultName)))
		if !t.Failed() {
			require.NoError(t, os.RemoveAll(dir))
		}
	})
	_, err := controlplane.Build(t.Context(), "", t.Output(), append(controlplane.NodeBinaries(), controlplane.CelsetScheduler, controlplane.KubeScheduler, controlplane.TopologyDriver)...)
	require.NoError(t, err)
	cluster.Env = env.Start(t, controlplane.Options{DataDir: dir, Users: []controlplane.User{env.TopologyDriver}})
	cluster.life = context.WithoutCancel(t.Context())
	cluster.ledger, err = keepLedger(cluster.life)
	require.NoError(t, err)
	t.Cleanup(func() {
		cluster.ledger.close()
		require.NoError(t, cluster.ledger.Entries().Err())
	})
	cluster.node, err = realnode.Start(cluster.life, cluster.ControlPlane, realnode.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cluster.node.Stop()) })
	cluster.ApplyManifests(t, "topology-driver/rbac.yaml", "examples/deviceclasses.yaml")
	cluster.drivers = map[string]*controlplane.Process{}
	t.Cleanup(func() {
		for _, driver := range cluster.drivers {
			driver.Stop()
		}
	})
	for _, s := range []*realStory{ring, grid} {
		require.NoError(t, startDriver(s))
	}
	cluster.StartScheduler(t, controlplane.SchedulerOptions{})
	require.NoError(t, addKwokNodes(cluster.life))
}

// nothingLeft returns an error if processes, mounts or cgroups of a run still exist.
func nothingLeft(dirs ...string) error {
	for _, dir := range dirs {
		left, err := realnode.Leftovers(dir)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("left behind:\n%s", strings.Join(left, "\n"))
		}
	}
	return nil
}

// startKubelet starts the kubelet again after a test has ended it.
func startKubelet() error { return cluster.node.StartKubelet(cluster.life) }

// startDriver starts the driver of a story's devices on the node.
func startDriver(s *realStory) error {
	kubeconfig, err := cluster.KubeconfigFor(env.TopologyDriver.Name)
	if err != nil {
		return err
	}
	flags := append([]string{"--kubeconfig=" + kubeconfig}, s.DriverFlags...)
	driver, err := cluster.node.StartDriver(cluster.life, s.Pod, flags...)
	if err != nil {
		return err
	}
	cluster.drivers[s.Pod] = driver
	return nil
}

// forgedLabel marks claims that a test allocated with devices of other claims. The ledger ignores them.
const forgedLabel = "e2e.celset.dev/forged"

// A claimsLedger is a ledger that also keeps the devices of pods whose claims were deleted.
type claimsLedger struct {
	*ledger.Ledger
	cancel context.CancelFunc
	done   <-chan struct{}

	mu   sync.Mutex
	last map[types.UID][]string // devices by the UID of the pod that the claim was created for
}

// keepLedger starts a ledger in a cluster that has no claims yet. The ledger records claims until it is closed.
func keepLedger(ctx context.Context) (*claimsLedger, error) {
	l := &claimsLedger{last: map[types.UID][]string{}}
	l.Ledger = ledger.New(l.remember)
	ctx, l.cancel = context.WithCancel(ctx)
	var err error
	l.done, err = l.Follow(ctx, client(), metav1.NamespaceAll, "!"+forgedLabel)
	return l, err
}

func (l *claimsLedger) close() {
	l.cancel()
	<-l.done
}

// remember records the devices of a claim. It never reports a mistake, because the tests judge the devices.
func (l *claimsLedger) remember(claim *resourceapi.ResourceClaim) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, owner := range claim.OwnerReferences {
		l.last[owner.UID] = ledger.DevicesOf(claim)
	}
	return ""
}

// devices returns the devices of the claim that was created for a pod, even after the claim was deleted. The claim name in the
// pod's status is not reliable then: if a controller sees the deletion of the claim before the end of the pod, it creates a
// second claim. The result may be a moment behind the API server.
func (l *claimsLedger) devices(ctx context.Context, pod types.UID) ([]string, error) {
	var devices []string
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(context.Context) (bool, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		devices = slices.Clone(l.last[pod])
		return len(devices) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("no claim of it has ever had a device: %w", err)
	}
	return devices, nil
}
