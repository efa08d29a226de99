// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/guarded"
	"github.com/celset/celset/internal/testing/history"
	"github.com/celset/celset/internal/testing/minor"
)

// serviceAccount is whom manifests/scheduler/rbac.yaml is about.
const serviceAccount = "system:serviceaccount:kube-system:celset-scheduler"

// cluster is what all tests share. They run one after the other, because each has
// schedulers of its own, which are responsible for all pods.
var cluster struct {
	*controlplane.ControlPlane
	manifests string // directory
	// history is what all programs do to claims.
	history *history.History
	// controllers are kube-controller-manager, which reaches the API server through a gate,
	// too.
	controllers *replica
}

func client() kubernetes.Interface { return cluster.Client() }

func TestMain(m *testing.M) {
	code, err := runInCluster(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// runInCluster leaves no process and no goroutine behind; files only if something
// failed.
func runInCluster(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "celset-rollout-")
	if err != nil {
		return 1, err
	}
	if err := startCluster(ctx, dir); err != nil {
		return 1, fmt.Errorf("%w\nthe components' files are in %s", err, dir)
	}
	code = m.Run()
	cancel()
	cluster.controllers.end()
	cluster.Stop()
	if code != 0 {
		return code, fmt.Errorf("the components' logs are in %s", cluster.LogDir())
	}
	if err := errors.Join(goleak.Find(), os.RemoveAll(dir)); err != nil {
		return 1, err
	}
	return 0, nil
}

// gates are those of all that takes part.
var gates = minor.TurnOn(features.DRAExtendedResource)

// startCluster starts everything but schedulers. Nobody runs the pods: that they are
// bound is all that a scheduler is responsible for.
func startCluster(ctx context.Context, dir string) (err error) {
	root, err := controlplane.ModuleRoot()
	if err != nil {
		return err
	}
	cluster.manifests = filepath.Join(root, "manifests")
	if _, err := controlplane.Build(ctx, "", os.Stderr, controlplane.CelsetScheduler, controlplane.KubeScheduler, guarded.Binary); err != nil {
		return err
	}
	cluster.ControlPlane, err = controlplane.Start(ctx, controlplane.Options{
		DataDir:  dir,
		Progress: os.Stderr,
		SkipKwok: true,
		// It is started behind a gate.
		SkipControllerManager: true,
		// One kind of the pods needs it, and it is off in older versions.
		FeatureGates: gates,
		Users: []controlplane.User{
			{Name: serviceAccount, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system"}},
			guarded.User(),
		},
	})
	if err != nil {
		return err
	}
	cluster.history = history.New()
	err = startControllers(ctx, dir)
	for _, file := range []string{"scheduler/rbac.yaml", "examples/deviceclasses.yaml"} {
		if err == nil {
			err = apply(ctx, filepath.Join(cluster.manifests, file))
		}
	}
	if err != nil {
		cluster.Stop()
	}
	return err
}

// startControllers starts kube-controller-manager behind a gate, and again when it ends.
func startControllers(ctx context.Context, dir string) error {
	r, err := newReplica(controlplane.KubeControllerManager, cluster.RESTConfig(), 0)
	if err != nil {
		return err
	}
	path, err := kubeconfig(dir, r.gate.server.URL)
	if err != nil {
		return err
	}
	r.launch = func(ctx context.Context) (*controlplane.Process, error) {
		return cluster.StartControllerManager(ctx, path)
	}
	cluster.controllers = r
	return r.keep(ctx)
}

func apply(ctx context.Context, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = controlplane.Apply(ctx, cluster.RESTConfig(), content, controlplane.ApplyOptions{})
	return err
}
