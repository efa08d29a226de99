// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/kubernetes"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/realnode"
)

const (
	// enabledEnv has the tests run at all.
	enabledEnv = "CELSET_E2E"
	// ciEnv makes it a failure if they can't.
	ciEnv = "CI"

	namespace = "default"

	// driverUser is whom manifests/topology-driver/rbac.yaml is about.
	driverUser = "system:serviceaccount:celset-topology-driver:celset-topology-driver"
)

// cluster is what all tests share. They run one after the other, because each wants
// the node's devices for itself.
var cluster struct {
	*controlplane.ControlPlane
	node      *realnode.Node
	manifests string // directory
	drivers   map[string]*controlplane.Process
	ledger    *claimsLedger
	// life is the context of what a test starts for the tests after it, too.
	life context.Context
}

func client() kubernetes.Interface { return cluster.Client() }

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		runUntilKilled(dir)
		return
	}
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
	code, err := runInCluster(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// runInCluster leaves nothing behind; files only if something failed.
func runInCluster(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := filepath.Join(os.TempDir(), "celset-e2e")
	defer func() {
		if code != 0 || err != nil {
			err = errors.Join(err, fmt.Errorf("the components' logs are in %s", filepath.Join(dir, "logs")))
		}
	}()
	// A former run's objects are of no use to this one; the node looks after what else
	// it may have left.
	if err := os.RemoveAll(filepath.Join(dir, "etcd")); err != nil {
		return 1, err
	}
	if err := startCluster(ctx, dir); err != nil {
		return 1, err
	}
	code = m.Run()
	if err := errors.Join(stopCluster(), cluster.ledger.Entries().Err()); err != nil {
		return 1, err
	}
	cancel()
	if code != 0 {
		return code, nil
	}
	return 0, errors.Join(nothingLeft(dir, cluster.node.Dir()), goleak.Find(), os.RemoveAll(dir))
}

// nothingLeft looks for processes, mounts and cgroups of a run.
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

// startCluster starts everything. On failure, it has stopped everything again.
func startCluster(ctx context.Context, dir string) (err error) {
	cluster.life = ctx
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	cluster.manifests = filepath.Join(root, "manifests")
	binaries := append(controlplane.NodeBinaries(), controlplane.CelsetScheduler, realnode.TopologyDriver)
	if _, err := controlplane.Build(ctx, "", os.Stderr, binaries...); err != nil {
		return err
	}
	cluster.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		DataDir: dir, Progress: os.Stderr, Users: []controlplane.User{{Name: driverUser}},
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stopCluster())
		}
	}()
	l, err := keepLedger(ctx)
	if err != nil {
		return err
	}
	cluster.ledger = l
	if cluster.node, err = realnode.Start(ctx, cluster.ControlPlane, realnode.Options{}); err != nil {
		return err
	}
	for _, manifest := range []string{"topology-driver/rbac.yaml", "examples/deviceclasses.yaml"} {
		if err := apply(ctx, manifest); err != nil {
			return err
		}
	}
	cluster.drivers = map[string]*controlplane.Process{}
	for _, s := range []*told{ring, grid} {
		if err := startDriver(s); err != nil {
			return err
		}
	}
	if _, err := cluster.StartScheduler(ctx, controlplane.SchedulerOptions{
		ConfigFile:   filepath.Join(cluster.manifests, "scheduler", "config.yaml"),
		FeatureGates: map[string]bool{v1alpha1.FeatureGate: true},
	}); err != nil {
		return err
	}
	return addKwokNodes(ctx)
}

// apply applies a file of manifests.
func apply(ctx context.Context, name string) error {
	content, err := os.ReadFile(filepath.Join(cluster.manifests, name))
	if err != nil {
		return err
	}
	_, err = controlplane.Apply(ctx, cluster.RESTConfig(), content, controlplane.ApplyOptions{})
	return err
}

// stopCluster is an error if the node left something behind.
func stopCluster() (err error) {
	if cluster.ledger != nil {
		cluster.ledger.close()
	}
	for _, driver := range cluster.drivers {
		driver.Stop()
	}
	if cluster.node != nil {
		err = cluster.node.Stop()
	}
	cluster.Stop()
	return err
}

// startKubelet starts another kubelet after one that was ended.
func startKubelet() error { return cluster.node.StartKubelet(cluster.life) }

// startDriver starts the driver of a story's devices on the node.
func startDriver(s *told) error {
	kubeconfig, err := cluster.KubeconfigFor(driverUser)
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
